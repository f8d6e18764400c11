"""Every error a user can cause, as one tree under `SpamError`.

A message is one sentence in three parts: where (file:row:column, or the option), what was found, what to do.
Each class carries the exit code the command line ends with, so that scripts can tell the cases apart.
"""

from __future__ import annotations


class SpamError(Exception):
    """Base of all expected errors; anything else that escapes is a bug of ours (exit code 70)."""

    exit_code = 70


class BadInput(SpamError, ValueError):
    """A file, column, option or value that cannot be used as given."""

    exit_code = 2


class TooLarge(SpamError):
    """The work would not fit in the memory that is there."""

    exit_code = 3


class DiskError(SpamError, OSError):
    """A folder that cannot be written, or a disk that is full."""

    exit_code = 4


class Diverged(SpamError):
    """A NaN or an infinity during training; the message names the tensor and the step."""

    exit_code = 5


class RunsFailed(SpamError):
    """A grid has come to its end and some of its runs have no result; each has a record that says why."""

    exit_code = 6


class WorkerLost(SpamError):
    """A process of a team has gone while training; the last checkpoint can be resumed."""

    exit_code = 6


class Interrupted(SpamError):
    """Ctrl-C (130) or SIGTERM (143) while training; the run folder can be resumed."""

    def __init__(self, message: str, exit_code: int = 130) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def one_of(value: str, allowed: tuple[str, ...], what: str) -> str:
    """Return `value` if it is allowed, otherwise say what is, with the nearest match first."""
    import difflib

    if value in allowed:
        return value
    near = difflib.get_close_matches(value, allowed, n=1)
    hint = f"did you mean '{near[0]}'? " if near else ""
    raise BadInput(f"{what}: found '{value}'; {hint}use one of {', '.join(allowed)}")
