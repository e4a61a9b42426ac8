"""The viewer: panels over one running frame. It shows what the frame lists, and renders nothing."""
