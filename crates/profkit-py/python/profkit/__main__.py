"""The command ``profkit``: ``python -m profkit`` is the same."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import sysconfig

from . import _native


def main() -> None:
    # As in a program: Ctrl-C ends the process, unless the command handles it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # What `python -m` starts has no name of its own, and cannot be started by compilers that the command runs.
    name = sys.argv[0]
    script = os.path.join(sysconfig.get_path("scripts"), "profkit")
    if os.path.basename(name) == "__main__.py":
        name = "profkit"
    elif os.path.exists(name):
        script = os.path.abspath(name)
    if not os.path.exists(script):
        script = shutil.which("profkit") or script
    words = [os.fsencode(word) for word in [name, *sys.argv[1:]]]
    code = _native.main(words, os.path.realpath(script))
    sys.stdout.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
