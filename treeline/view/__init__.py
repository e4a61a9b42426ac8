"""The viewer: panels over one running frame. It draws what the frame lists and owns no rendering."""
