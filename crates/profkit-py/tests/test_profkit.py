"""What people do with the package. `cargo xtask wheel` runs these tests in a new environment that has the wheel."""

import json
import multiprocessing
import os
import pathlib
import pickle
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
import time
from fractions import Fraction

import pytest

import profkit

REPO = pathlib.Path(__file__).parents[3]
README = REPO / "tests/fixtures/readme"
SHARDS = sorted(README.glob("clang-*.profraw"))
TEXT = b":ir\nmain\n1234\n1\n%d\n"
COMMAND = pathlib.Path(sysconfig.get_path("scripts")) / "profkit"


def counts(merged):
    return [row["count"] for row in profkit.read(merged.bytes).counters()]


def test_a_merge_is_that_of_the_command(tmp_path):
    merged = profkit.merge([README])
    path = tmp_path / "all.profdata"
    subprocess.run([COMMAND, "merge", "-q", README, "-o", path], check=True)
    assert merged.bytes == path.read_bytes()
    assert merged.report["totals"]["files_repaired"] == 1
    assert "repaired" in merged.messages
    written = profkit.merge(README, output=tmp_path / "again.profdata")
    assert written.bytes is None and (tmp_path / "again.profdata").read_bytes() == merged.bytes


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_inputs_in_memory(kind):
    inputs = [kind(TEXT % 10), kind(TEXT % 20)]
    assert counts(profkit.merge(inputs)) == [30]
    assert counts(profkit.merge(inputs, weights=[1, "0.5"])) == [20]
    assert counts(profkit.merge(inputs, weights=[Fraction(1, 2), 2])) == [45]


def test_weights_that_are_none():
    with pytest.raises(ValueError, match="1 weights for 2 inputs"):
        profkit.merge([TEXT % 1, TEXT % 2], weights=[1])
    for weight in (-1, "many", 10**40):
        with pytest.raises(profkit.Error) as caught:
            profkit.merge([TEXT % 1], weights=[weight])
        assert caught.value.kind == "usage"
    with pytest.raises(TypeError, match="int"):
        profkit.merge([3])


def test_huge_numbers_in_options():
    with pytest.raises(profkit.Error) as caught:
        profkit.show(SHARDS[0], top=10**40)
    assert caught.value.kind == "usage"
    with pytest.raises(TypeError, match="top: expected"):
        profkit.show(SHARDS[0], top=object())


def test_bad_inputs():
    with pytest.raises(profkit.Error) as caught:
        profkit.merge([b""])
    assert caught.value.kind == "nothing_left"
    assert caught.value.report["events"][0]["reason"] == "empty_file"
    with pytest.raises(profkit.Error) as caught:
        profkit.show(SHARDS[0].read_bytes()[:60])
    error = caught.value
    assert (error.kind, error.offset, error.structure) == ("bad_header", 0, "header of raw profile")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.kind) == (profkit.Error, str(error), error.kind)
    with pytest.raises(profkit.Error, match="not a profile"):
        profkit.read(b"\xff\xfej\0u\0n\0k\0")
    sample, instr = b"main:100:5\n 1: 3\n", TEXT % 1
    with pytest.raises(profkit.Error) as caught:
        profkit.merge([sample, instr])
    assert caught.value.kind == "groups"
    with pytest.raises(profkit.Error) as caught:
        profkit.merge([instr, b"junk"], max_dropped=0)
    assert caught.value.kind == "gate"


def test_missing_files():
    for call in (profkit.show, profkit.merge):
        with pytest.raises(profkit.FileError) as caught:
            call("there/is/no.profraw")
        assert isinstance(caught.value, OSError) and isinstance(caught.value, profkit.Error)
        assert (caught.value.kind, caught.value.errno) == ("system", 2)
        assert caught.value.file == "there/is/no.profraw"


@pytest.mark.skipif(sys.platform == "darwin", reason="file names are UTF-8 there")
def test_paths_of_any_bytes(tmp_path):
    odd = os.fsencode(tmp_path) + b"/1,\xff .profraw"
    with open(odd, "wb") as file:
        file.write(SHARDS[0].read_bytes())
    path = pathlib.Path(os.fsdecode(odd))
    assert profkit.merge([path]).report["totals"]["files_kept"] == 1
    assert profkit.read(path).kind == "instrumentation"
    output = os.fsdecode(os.fsencode(tmp_path) + b"/\xfe.profdata")
    profkit.merge([path], output=output)
    assert os.path.exists(output)


def test_answers(tmp_path):
    old, new = profkit.merge([TEXT % 10]), profkit.merge([TEXT % 40])
    shown = profkit.show(old.bytes, functions=True)
    assert shown["schema"] == "profkit-show" and shown.code == 0
    assert "main" in shown.text()
    again = pickle.loads(pickle.dumps(shown))
    assert again == shown and again.text().splitlines()[1:] == shown.text().splitlines()[1:]
    assert profkit.diff(old.bytes, new.bytes)["schema"] == "profkit-diff"
    assert profkit.match(old.bytes, write(tmp_path / "new.proftext", TEXT % 1))["schema"] == "profkit-match"
    bad = profkit.doctor(write(tmp_path / "bad.profraw", b"junk"))
    assert bad.code == 1 and bad["files"][0]["verdict"] == "foreign"
    gated = profkit.match(old.bytes, write(tmp_path / "other.proftext", TEXT.replace(b"main", b"other") % 1), fail_under=90)
    assert gated.code == 3 and "gate" in gated.messages


def write(path, contents):
    path.write_bytes(contents)
    return path


def test_options_as_on_a_command_line():
    with pytest.raises(profkit.Error, match="--tpo is not an option"):
        profkit.show(SHARDS[0], tpo=1)
    only = profkit.show(README / "clang-22.profraw", function=["main", "more_steps"])
    assert sum(one["entry"] for one in only["functions"]) > 0 and len(only["functions"]) == 2
    text = profkit.merge(SHARDS[0], text=True, function_regex=["^main$"])
    assert text.bytes.startswith(b"main\n")
    assert profkit.merge(SHARDS[0], llvm=16, sparse=False).bytes != profkit.merge(SHARDS[0]).bytes


def test_nothing_is_printed(capfd):
    profkit.merge([README])
    profkit.show(README)
    profkit.doctor(README)
    assert capfd.readouterr() == ("", "")


def test_tables():
    profile = profkit.read(SHARDS[0])
    functions = profile.functions()
    assert "sum" in functions.columns
    rows = list(functions)
    assert {row["function"] for row in rows} >= {"main"}
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table(functions)
    assert table.column_names == functions.columns and table.num_rows == len(rows)
    assert str(table.schema.field("sum").type) == "uint64"
    assert table["sum"].to_pylist() == [row["sum"] for row in rows]
    # The stream keeps the bytes, and does not need the table that made it.
    stream = profile.counters().__arrow_c_stream__()
    del profile, functions
    assert "arrow_array_stream" in repr(stream)
    with pytest.raises(profkit.Error) as caught:
        profkit.read(SHARDS[0]).table("contexts").rows()
    assert caught.value.kind == "usage"
    assert profkit.read(SHARDS[0]).summary()["totals"]


def test_parts_give_what_one_merge_gives():
    data = [path.read_bytes() for path in SHARDS]
    ids = [path.name for path in SHARDS]
    whole = profkit.merge(data, ids=ids, order_free=True)
    parts = []
    for one, name in zip(data, ids):
        merger = profkit.Merger()
        merger.add([one, one], ids=[name, name])
        assert len(merger) == 1 and merger.repeated == [name]
        parts.append(merger.to_bytes())
    right = profkit.Merger()
    for part in reversed(parts):
        right.merge(part)
    left = profkit.Merger.from_bytes(parts[0])
    left.merge(pickle.loads(pickle.dumps(right)))
    assert left.to_bytes() == right.to_bytes()
    assert left.finish().bytes == whole.bytes
    assert left.finish(text=True).bytes == profkit.merge(data, ids=ids, order_free=True, text=True).bytes
    assert right.finish().report["totals"] == whole.report["totals"]


def test_parts_that_do_not_fit():
    one, other = profkit.Merger(), profkit.Merger()
    one.add([TEXT % 1, TEXT % 2], ids=["a", "b"])
    other.add([TEXT % 2, TEXT % 3], ids=["b", "c"])
    with pytest.raises(profkit.Error) as caught:
        one.merge(other)
    assert caught.value.kind == "overlap"
    with pytest.raises(profkit.Error) as caught:
        one.add(TEXT % 9, ids=["a"])
    assert caught.value.kind == "two_contents"
    with pytest.raises(profkit.Error) as caught:
        profkit.Merger(temporal_profile_trace_reservoir_size=7).merge(one)
    assert caught.value.kind == "other_options" or len(one) == 2
    damaged = bytearray(one.to_bytes())
    damaged[len(damaged) // 2] ^= 0xFF
    with pytest.raises(profkit.Error) as caught:
        other.merge(damaged, name="the part")
    assert caught.value.file == "the part" and caught.value.offset is not None
    assert len(one) == 2 and len(other) == 2
    unnamed = profkit.Merger()
    unnamed.add(TEXT % 1)
    with pytest.raises(profkit.Error) as caught:
        unnamed.to_bytes()
    assert caught.value.kind == "no_id"


def test_results_can_be_pickled():
    merged = profkit.merge([TEXT % 1])
    assert pickle.loads(pickle.dumps(merged)) == merged
    profile = pickle.loads(pickle.dumps(profkit.read(merged.bytes)))
    assert counts(merged) == [row["count"] for row in profile.counters()]


def many(number):
    """A text profile that takes a while to merge."""
    lines = [":ir\n"]
    lines += [f"function_{index}\n{index}\n8\n" + f"{number}\n" * 8 for index in range(number)]
    return "".join(lines).encode()


def test_threads_run_at_the_same_time():
    data = many(4000)
    ends, ticks = [], 0

    def work():
        profkit.merge([data])
        ends.append(time.monotonic())

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    # This thread goes on: a merge that kept the interpreter's lock would stop it.
    while any(thread.is_alive() for thread in threads):
        ticks += 1
        time.sleep(0.001)
    assert len(ends) == 2 and ticks > 5


def test_many_threads_share_a_merger():
    merger = profkit.Merger()

    def work(start):
        for number in range(start, start + 8):
            merger.add(TEXT % 1, ids=[str(number)])

    threads = [threading.Thread(target=work, args=(8 * index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(merger) == 32 and counts(merger.finish()) == [32]


def child(queue):
    queue.put(profkit.merge([TEXT % 1, TEXT % 2]).bytes)


def test_a_forked_process_works():
    before = profkit.merge([TEXT % 1, TEXT % 2]).bytes
    profkit.diff(before, before)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=child, args=(queue,))
    process.start()
    assert queue.get(timeout=60) == before
    process.join()
    assert process.exitcode == 0


def test_a_panic_is_an_exception():
    script = """
import profkit
try:
    profkit._native._panic()
except profkit.Error as error:
    assert error.kind == "internal", error.kind
print(profkit.merge([b":ir\\nmain\\n1\\n1\\n5\\n"]).report["totals"]["files_kept"])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "1\n", done.stderr


def test_ctrl_c_ends_a_merge():
    # Inputs enough for a minute; each is parsed anew, because texts have no fast path.
    script = f"""
import signal, sys
# A job in the background of a shell ignores this signal, and Python then has no handler.
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})
import profkit, test_profkit
data = test_profkit.many(2000)
print("ready", flush=True)
try:
    profkit.merge([data] * 3000, threads=1)
except KeyboardInterrupt:
    print("interrupted", len(profkit.merge([data]).bytes) > 0)
"""
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.5)
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert out == "interrupted True\n"
    assert time.monotonic() - start < 20


def test_the_command(tmp_path):
    for words in ([COMMAND], [sys.executable, "-m", "profkit"]):
        version = subprocess.run([*words, "--version"], capture_output=True, text=True, check=True).stdout
        assert version.startswith(f"profkit {profkit.__version__}")
        wrong = subprocess.run([*words, "shwo"], capture_output=True, text=True)
        assert wrong.returncode == 2 and "shwo" in wrong.stderr
        bad = subprocess.run([*words, "show", "no.profraw"], capture_output=True, text=True)
        assert bad.returncode == 1
    link = tmp_path / "llvm-profdata"
    link.symlink_to(COMMAND)
    shown = subprocess.run([link, "show", README / "clang-22.profraw"], capture_output=True, text=True, check=True).stdout
    assert shown.startswith("Instrumentation level:")
    piped = subprocess.run([COMMAND, "show", "-"], stdin=open(SHARDS[0], "rb"), capture_output=True, text=True)
    assert piped.returncode == 0
    whole = subprocess.run([COMMAND, "merge", "-q", README, "-o", "-"], capture_output=True, check=True).stdout
    assert whole == profkit.merge([README]).bytes


@pytest.mark.skipif(not shutil.which("gcc"), reason="there is no gcc")
@pytest.mark.parametrize("words", [[COMMAND], [sys.executable, "-m", "profkit"]], ids=["script", "module"])
def test_compilers_come_back_to_the_command(words, tmp_path):
    source = write(tmp_path / "a.c", b"int main(void) { return 0; }\n")
    subprocess.run([*words, "mip", "cc", "--", "gcc", source, "-o", "a"], check=True, cwd=tmp_path)
    subprocess.run([tmp_path / "a"], check=True, cwd=tmp_path)
    assert (tmp_path / "default.mipraw").exists()


def test_ctrl_c_ends_the_command(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    process = subprocess.Popen(
        [COMMAND, "merge", fifo, "-o", tmp_path / "x.profdata"], stderr=subprocess.PIPE, text=True
    )
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    _, messages = process.communicate(timeout=30)
    assert process.returncode == -signal.SIGINT
    assert "cancelled by SIGINT" in messages


@pytest.mark.parametrize("page", [REPO / "crates/profkit-py/README.md", REPO / "docs/guide/python.md", REPO / "README.md"])
def test_the_python_lines_of_pages_run(page, tmp_path, monkeypatch):
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S)
    assert blocks, page
    (tmp_path / "runs").mkdir()
    for path in SHARDS:
        (tmp_path / "runs" / path.name).write_bytes(path.read_bytes())
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    for block in blocks:
        exec(compile(block, str(page), "exec"), names)


def test_the_report_is_json():
    assert json.loads(json.dumps(profkit.merge([README]).report)) == profkit.merge([README]).report


def test_what_engines_call(tmp_path):
    from profkit import fleet

    rows = [{"uri": str(path), "id": path.name, "weight": None} for path in SHARDS]
    gone = {"uri": str(tmp_path / "gone.profraw")}
    part = fleet.combine([fleet.premerge(rows[:2]), fleet.premerge(rows[2:]), fleet.premerge(rows[:2]), fleet.premerge([gone]), fleet.premerge([])])
    merged = fleet.finish(part, text=True)
    assert merged.bytes == profkit.merge(SHARDS, order_free=True, text=True).bytes
    assert merged.report["totals"]["files"] == len(SHARDS) + 1
    assert [event["reason"] for event in merged.report["events"] if "gone" in event["file"]] == ["unreadable"]
    twice = fleet.premerge([{"uri": str(SHARDS[0]), "weight": "2"}])
    assert sum(counts(fleet.finish(twice))) == 2 * sum(counts(profkit.merge(SHARDS[0])))


def test_a_manifest_is_read_as_it_is_needed(monkeypatch):
    from profkit import fleet

    monkeypatch.setattr(fleet, "_ROWS_AT_ONCE", 2)
    read, sizes = [], []
    add = profkit.Merger.add

    def noted(self, inputs, **options):
        sizes.append((len(inputs), len(read)))
        add(self, inputs, **options)

    def rows():
        for path in SHARDS:
            read.append(path)
            yield {"uri": str(path), "id": path.name}

    monkeypatch.setattr(profkit.Merger, "add", noted)
    part = fleet.premerge(rows())
    count = len(SHARDS)
    assert sizes == [(min(2, count - start), min(start + 2, count)) for start in range(0, count, 2)]
    assert fleet.finish(part).bytes == profkit.merge(SHARDS, ids=[path.name for path in SHARDS], order_free=True).bytes
