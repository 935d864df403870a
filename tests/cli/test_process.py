"""What only a process of its own can show: imports, signals, pipes, full disks, completion."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import subprocess
import sys
import time

import pytest
import typer

from maxdisc.cli.failures import command
from maxdisc.numerics.installation import pip_line

HEAVY = ("numpy", "scipy", "sklearn", "pandas", "pyarrow", "numba", "matplotlib", "safetensors")
MAXDISC = [sys.executable, "-m", "maxdisc"]


def process(*arguments, **options):
    options = {"capture_output": True, "text": True, **options}
    return subprocess.run([*MAXDISC, *map(str, arguments)], check=False, **options)


def python(code, **options):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, **options
    )


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["fit", "--help"], ["predict", "--help"], ["fitt"], []]
)
def test_help_and_version_import_nothing_heavy(arguments):
    code = f"""
import sys
from maxdisc.cli import main
code = main({arguments!r})
print([name for name in {HEAVY!r} if name in sys.modules], code, file=sys.stderr)
"""
    done = python(code)
    assert done.stderr.splitlines()[-1] == ("[] 2" if arguments == ["fitt"] else "[] 0")


@pytest.mark.parametrize(
    "command", ["demo", "fit", "evaluate", "predict", "rank", "explain", "report", "export", "info"]
)
def test_every_command_has_help(command):
    done = process(command, "--help", env={**os.environ, "COLUMNS": "80", "NO_COLOR": "1"})
    assert done.returncode == 0
    assert f"maxdisc {command}" in done.stdout
    assert command == "demo" or "Example" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_version():
    import maxdisc

    assert process("--version").stdout == f"maxdisc {maxdisc.__version__}\n"


@pytest.mark.parametrize("package", ["typer", "rich"])
def test_without_the_extra_the_pip_line_is_shown(package):
    done = python(
        f"import sys; sys.modules[{package!r}] = None\n"
        "from maxdisc.cli import main; sys.exit(main(['--help']))"
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert pip_line("cli") in done.stderr


def test_without_pyarrow_the_pip_line_is_shown(files, tmp_path):
    arguments = ["fit", str(files / "train.csv"), "-o", str(tmp_path / "m")]
    done = python(
        "import sys; sys.modules['pyarrow'] = None\n"
        f"from maxdisc.cli import main; sys.exit(main({arguments}))"
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert pip_line("cli") in done.stderr


def test_completion():
    environment = {
        **os.environ,
        "_MAXDISC_COMPLETE": "complete_bash",
        "COMP_WORDS": "maxdisc ev",
        "COMP_CWORD": "1",
    }
    assert process(env=environment).stdout.split() == ["evaluate"]
    environment.update(COMP_WORDS="maxdisc fit --fam", COMP_CWORD="2")
    assert process(env=environment).stdout.split() == ["--family"]
    environment.update(COMP_WORDS="maxdisc fit --family po", COMP_CWORD="3")
    assert process(env=environment).stdout.split() == ["poisson"]
    script = process(env={**os.environ, "_MAXDISC_COMPLETE": "source_bash"})
    assert "complete -o default -F" in script.stdout


def test_a_broken_pipe_ends_quietly(files, tmp_path):
    lines = (files / "test.csv").read_text().splitlines()
    (tmp_path / "long.csv").write_text("\n".join([lines[0], *(lines[1:] * 100)]))
    with subprocess.Popen(
        [*MAXDISC, "predict", str(files / "topics.maxdisc"), str(tmp_path / "long.csv")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        assert running.stdout.readline() == b"label,probability,runner_up,runner_up_probability\n"
        running.stdout.close()
        assert running.stderr.read() == b""
        assert running.wait() == 141


def begun(*arguments, stdin=subprocess.PIPE):
    return subprocess.Popen(
        [*MAXDISC, *map(str, arguments)],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def wait_for(condition):
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it never happened")


def test_stopped_while_waiting_for_more(files):
    running = begun("predict", files / "topics.maxdisc", "-", "--format", "csv")
    with running:
        running.stdin.write((files / "test.csv").read_bytes())
        running.stdin.flush()
        time.sleep(4)  # until it waits; were it earlier, the end would be the same
        running.send_signal(signal.SIGINT)
        wait_for(lambda: running.poll() is not None)
        assert running.stderr.read().decode() == "maxdisc: stopped.\n"
    assert running.returncode == 130


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_stopped_in_the_middle_the_old_file_stays(files, tmp_path, end):
    out = tmp_path / "out.csv"
    out.write_text("precious")
    running = begun("predict", files / "topics.maxdisc", "-", "-o", out, "--force", "--format", "lines")
    with running:
        running.stdin.write((b"news " * 400 + b"moon\n") * 4500)  # more than a batch, and then no end
        running.stdin.flush()
        wait_for(lambda: len(list(tmp_path.iterdir())) > 1)  # the temporary file is there
        running.send_signal(end)
        wait_for(lambda: running.poll() is not None)
        said = running.stderr.read().decode()
    assert out.read_text() == "precious"
    if end is signal.SIGINT:
        assert running.returncode == 130
        assert said == "maxdisc: stopped.\n"
        assert list(tmp_path.iterdir()) == [out]


def test_ctrl_c_is_not_lost_where_machine_code_calls_python():
    # As a compiler does when it is done: what is raised in there, nobody can catch.
    arrives = ctypes.CFUNCTYPE(None)(lambda: signal.raise_signal(signal.SIGINT))

    @command
    def compiles():
        for _ in range(2):
            arrives()
        time.sleep(30)

    before = sys.unraisablehook
    with pytest.raises(typer.Exit) as ended:
        compiles()
    assert ended.value.exit_code == 130
    assert sys.unraisablehook is before


def small_files_only():
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))


@pytest.mark.parametrize("command", ["fit", "predict"])
def test_a_full_disk_leaves_the_old_file(files, tmp_path, command):
    out = tmp_path / "out.csv"
    out.write_text("precious")
    arguments = {
        "fit": ["fit", files / "train.csv", "--label", "topic", "--text", "body"],
        "predict": ["predict", files / "topics.maxdisc", files / "test.csv", "--keep", "*"],
    }[command]
    # numba's cache would be refused as well, and is not what is tested here.
    done = process(*arguments, "-o", out, "--force", preexec_fn=small_files_only)
    assert done.returncode == 2
    assert done.stderr.startswith("maxdisc: ")
    assert done.stderr.count("\n") == 1
    assert "too large" in done.stderr
    assert done.stdout == ""
    assert out.read_text() == "precious"
    assert list(tmp_path.iterdir()) == [out]


def test_standard_output_that_is_full(files):
    with open("/dev/full", "w") as full:
        done = process(
            "predict", files / "topics.maxdisc", files / "test.csv",
            capture_output=False, stdout=full, stderr=subprocess.PIPE,
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == "maxdisc: standard output: no space left on device.\n"


DEFECT = """
import sys
import maxdisc.cli.fit.command
def broken(*a, **k):
    raise ZeroDivisionError("of all things")
maxdisc.cli.fit.command.require_writable = broken
from maxdisc.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_a_defect_is_one_line_that_asks_to_be_reported(tmp_path):
    arguments = [sys.executable, "-c", DEFECT, "fit", "a.csv", "-o", str(tmp_path / "m")]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert done.returncode == 70
    assert done.stderr.count("\n") == 1
    assert "please report it: ZeroDivisionError: of all things" in done.stderr
    with_debug = [*arguments[:3], "--debug", *arguments[3:]]
    done = subprocess.run(with_debug, capture_output=True, text=True, check=False)
    assert "Traceback" in done.stderr


def test_progress_is_only_for_terminals(files, tmp_path):
    import pty

    leader, follower = pty.openpty()
    done = process(
        "fit", files / "train.csv", "-o", tmp_path / "m",
        capture_output=False, stdout=subprocess.PIPE, stderr=follower, env={**os.environ, "TERM": "xterm"},
    )  # fmt: skip
    os.close(follower)
    said = os.read(leader, 100_000).decode()
    os.close(leader)
    assert done.returncode == 0
    assert "fitting" in said
    assert "\x1b[" in said
    assert "\x1b" not in done.stdout
