"""Which frame shows an output, and what is shown where no frame has it."""

from dataclasses import dataclass

from passes.frame_options import FrameOptions
from passes.outputs import frame_outputs
from treeline.view.picture_panel import choose_output


@dataclass(eq=False)
class Frame:
    options: FrameOptions

    def outputs(self):
        return frame_outputs(self.options)


@dataclass
class Session:
    frame: Frame | None = None
    counted: Frame | None = None

    def frame_for(self, counts):
        return self.counted if counts else self.frame


TIMED = Frame(FrameOptions(4, 4))
COUNTED = Frame(FrameOptions(4, 4, count=True))


def chosen(session, name):
    found = choose_output(session, name)
    return None if found is None else (found[0], found[1].name)


def test_counts_come_from_the_counted_frame_and_the_rest_from_what_is_shown():
    session = Session(TIMED, COUNTED)
    assert chosen(session, "depth") == (TIMED, "depth")
    assert chosen(session, "nodes/shadow") == (COUNTED, "nodes/shadow")


def test_a_count_that_is_not_known_shows_the_picture():
    assert chosen(Session(TIMED), "nodes/shadow") == (TIMED, "picture")
    # A frame that counts but shows another view is not asked for its counts.
    assert chosen(Session(COUNTED), "nodes/shadow") == (COUNTED, "picture")


def test_an_output_that_the_shown_frame_is_too_old_for_shows_the_picture():
    assert chosen(Session(TIMED, COUNTED), "occlusion") == (TIMED, "picture")
    later = Frame(FrameOptions(4, 4, occlusion=True))
    assert chosen(Session(later, COUNTED), "occlusion") == (later, "occlusion")


def test_nothing_before_the_first_frame():
    assert chosen(Session(), "picture") is None
