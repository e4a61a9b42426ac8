"""Errors that a user can cause, each with the exit code its command ends with.

A message is one line that names the thing and the limit; the command line prints it as it is,
without a traceback. Programming mistakes are not UserErrors and keep their traceback.
"""


class UserError(Exception):
    """A request that cannot be met: a wrong option, an unusable file, an unwritable place."""

    exit_code = 2


class CheckFailed(UserError):
    """A check ran and failed (validate, a ray set whose hits differ)."""

    exit_code = 1


class AdapterError(UserError):
    """No such adapter, no display, or a device that was lost."""

    exit_code = 3


class LimitError(UserError):
    """The scene or the picture needs more than the adapter offers; says both numbers."""
