"""Sample and heap profiles: the same functions take them, sound and damaged. `cargo xtask wheel` runs these tests too."""

import pathlib
import pickle

import pytest

import profkit
from profkit import fleet

FIXTURES = pathlib.Path(__file__).parents[3] / "tests/fixtures"
SAMPLES = [FIXTURES / f"sample/llvm-{release}-nested-{form}.sampleprof" for release, form in ((14, "ext"), (19, "text"), (22, "binary"))]
CONTEXTS = FIXTURES / "sample/llvm-22-contexts-ext.sampleprof"
DUMP = FIXTURES / "heap/heap.memprofraw"
PROGRAM = FIXTURES / "heap/heap.debug"
SECTION = FIXTURES / "indexed/clang-22-memprof-heap.profdata"
TEXT = b"main:100:5\n 1: 60\n 2: 40\n"


def parts_of(shards, **options):
    """One part of each shard: contents by id."""
    made = []
    for id, data in shards.items():
        merger = profkit.Merger(**options)
        merger.add([data, data], ids=[id, id], names=[id, id])
        assert len(merger) == 1 and merger.repeated == [id]
        made.append(merger.to_bytes())
    return made


def same_as_one_merge(shards, finish, **options):
    """Adds parts in two orders, with deliveries that come again. Returns the result of one merge of all, which is theirs."""
    whole = profkit.merge(list(shards.values()), ids=list(shards), names=list(shards), order_free=True, **options, **finish)
    parts = parts_of(shards, **options)
    right = profkit.Merger(**options)
    for part in [*reversed(parts), parts[0]]:
        right.merge(part)
    left = profkit.Merger.from_bytes(parts[0], **options)
    left.merge(pickle.loads(pickle.dumps(right)))
    assert left.to_bytes() == right.to_bytes()
    assert len(left) == len(shards)
    merged = left.finish(**finish)
    assert merged.bytes == whole.bytes
    for report in (merged.report, whole.report):
        # The files that this call wrote, and those for which it looked for programs.
        del report["outputs"]
        report.pop("correlation", None)
    assert merged.report == whole.report
    return whole


def total(data):
    return sum(row["samples"] for row in profkit.read(data).table("lines"))


def cut(path):
    data = path.read_bytes()
    return data[: len(data) * 2 // 3]


def test_samples_are_merged():
    merged = profkit.merge([TEXT, TEXT], weights=[1, 2])
    assert profkit.read(merged.bytes).kind == "sample"
    assert total(merged.bytes) == 300
    text = profkit.merge(SAMPLES, text=True)
    assert text.bytes.startswith(b"main:") and text.report["totals"]["files_kept"] == 3
    assert total(text.bytes) == sum(total(path) for path in SAMPLES)
    again = profkit.merge(text.bytes, to="ext-binary", function_contains=["main"])
    assert profkit.merge(again.bytes, text=True).bytes.startswith(b"main:")


def test_samples_are_read_and_compared(tmp_path):
    profile = profkit.read(SAMPLES[0])
    assert {row["function"] for row in profile.functions()} >= {"main"}
    pyarrow = pytest.importorskip("pyarrow")
    lines = profile.table("lines")
    assert pyarrow.table(lines)["samples"].to_pylist() == [row["samples"] for row in lines]
    shown = profkit.show(SAMPLES[0], functions=True)
    assert shown["schema"] == "profkit-show" and "main" in shown.text()
    assert profkit.doctor(SAMPLES[0], CONTEXTS).code == 0
    old, new = TEXT, TEXT.replace(b"60", b"600")
    changed = profkit.diff(old, new)
    assert changed["schema"] == "profkit-diff" and "main" in changed.text()
    other = tmp_path / "other.prof"
    other.write_bytes(TEXT.replace(b"main", b"other"))
    assert profkit.match(old, other, fail_under=90).code == 3


def test_parts_of_samples_give_what_one_merge_gives():
    shards = {path.name: path.read_bytes() for path in SAMPLES}
    shards |= {"text": TEXT, "again": TEXT, "cut": cut(SAMPLES[0]), "junk": b"\x7fELF no profile", "empty": b""}
    whole = same_as_one_merge(shards, {"text": True})
    reasons = {event["file"]: event["action"] for event in whole.report["events"]}
    assert reasons["junk"] == "dropped" and "cut" in reasons
    same_as_one_merge({"a": CONTEXTS.read_bytes(), "b": cut(CONTEXTS), "c": CONTEXTS.read_bytes()}, {}, drop_symbol_list=True)


def test_damaged_samples_are_reported():
    inputs, names = [TEXT, cut(SAMPLES[0]), b"main:1:1\n 1: x\n"], ["good", "cut", "wrong"]
    with pytest.raises(profkit.Error, match="2 of 3 inputs were dropped; the result would hold only the other input"):
        profkit.merge(inputs, names=names)
    merged = profkit.merge(inputs, names=names, max_dropped=2)
    assert merged.report["totals"]["files_kept"] == 1
    assert {event["file"] for event in merged.report["events"]} == {"cut", "wrong"}
    with pytest.raises(profkit.Error) as caught:
        profkit.merge([b"main:1:1\n 1: x\n"], names=["wrong"])
    assert caught.value.kind == "nothing_left" and caught.value.report["events"][0]["file"] == "wrong"
    with pytest.raises(profkit.Error) as caught:
        profkit.merge([TEXT, cut(SAMPLES[0])], strict=True)
    assert caught.value.kind == "input"
    assert profkit.doctor(SAMPLES[0]).code == 0
    damaged = profkit.doctor(cut(SAMPLES[0]))
    assert damaged.code == 1 and damaged["files"][0]["verdict"] != "sound"
    with pytest.raises(profkit.Error, match="line 2, column 5"):
        profkit.show(b"main:1:1\n 1: x\n")


def test_samples_that_cannot_be_added():
    samples, instr = profkit.Merger(), profkit.Merger()
    samples.add(TEXT, ids=["samples"])
    instr.add(b":ir\nmain\n1\n1\n5\n", ids=["counts"])
    before = samples.to_bytes()
    with pytest.raises(profkit.Error, match="sample profiles"):
        samples.merge(instr)
    with pytest.raises(profkit.Error) as caught:
        samples.add([TEXT], ids=["samples"], weights=[2])
    assert caught.value.kind == "two_contents"
    assert samples.to_bytes() == before
    # A damaged part, whatever bytes are damaged: an error, and nothing is added.
    for at in range(len(before)):
        part = bytearray(before)
        part[at] ^= 0x55
        with pytest.raises(profkit.Error) as caught:
            samples.merge(part, name="the part")
        assert caught.value.file == "the part"
    assert samples.to_bytes() == before


def test_heap_profiles_are_merged(tmp_path):
    merged = profkit.merge([DUMP, DUMP.read_bytes()], binaries=[PROGRAM])
    rows = list(profkit.read(merged.bytes).table("contexts"))
    once = list(profkit.read(profkit.merge(DUMP, binaries=[PROGRAM]).bytes).table("contexts"))
    assert sum(row["bytes"] for row in rows) == 2 * sum(row["bytes"] for row in once) > 0
    yaml = profkit.merge(DUMP, binaries=[PROGRAM], to="memprof-yaml").bytes
    assert yaml.startswith(b"---") and profkit.read(yaml).kind == profkit.read(DUMP).kind == "heap"
    # Of the dump itself, the program is found too. It has a context more: that of a library that nobody named.
    dumped = profkit.read(DUMP.read_bytes(), binaries=[PROGRAM]).table("contexts")
    assert {row["bytes"] for row in dumped} > {row["bytes"] for row in once}
    with pytest.raises(profkit.Error, match="--binaries"):
        profkit.merge(DUMP, output=tmp_path / "none.profdata")
    assert not (tmp_path / "none.profdata").exists()


def test_heap_profiles_are_read_and_compared():
    portable = profkit.merge(DUMP, binaries=[PROGRAM], portable=True).bytes
    shown = profkit.show(portable)
    assert shown["schema"] == "profkit-show" and "bytes" in shown.text()
    assert profkit.show(DUMP, binaries=[PROGRAM]).code == 0
    assert profkit.doctor(DUMP, SECTION, portable).code == 0
    assert profkit.match(portable, PROGRAM)["schema"] == "profkit-match-heap"
    twice = profkit.merge([portable, portable]).bytes
    assert profkit.diff(portable, twice)["schema"] == "profkit-diff"
    pyarrow = pytest.importorskip("pyarrow")
    contexts = profkit.read(portable).table("contexts")
    table = pyarrow.table(contexts)
    assert table["bytes"].to_pylist() == [row["bytes"] for row in contexts]
    assert "main" in str(table["stack"].to_pylist())


def test_parts_of_heap_profiles_give_what_one_merge_gives():
    yaml = profkit.merge(DUMP, binaries=[PROGRAM], to="memprof-yaml").bytes
    shards = {"dump": DUMP.read_bytes(), "dump-again": DUMP.read_bytes(), "yaml": yaml, "indexed": SECTION.read_bytes()}
    shards |= {"cut": cut(DUMP), "wrong.yaml": b"---\nHeapProfileRecords:\n- nothing\n", "junk": b"\x7fELF no profile"}
    whole = same_as_one_merge(shards, {"binaries": [PROGRAM]})
    events = {event["file"]: event["action"] for event in whole.report["events"]}
    assert events["wrong.yaml"] == "dropped" and events["junk"] == "dropped" and "cut" in events
    # Counters beside them, in one part.
    shards["counters"] = b":ir\nmain\n1\n1\n5\n"
    both = same_as_one_merge(shards, {"binaries": [PROGRAM]})
    assert [row["count"] for row in profkit.read(both.bytes).counters()] == [5]


def test_damaged_heap_profiles_are_reported():
    merged = profkit.merge([DUMP, cut(DUMP)], binaries=[PROGRAM])
    assert merged.report["totals"]["files_kept"] == 1
    with pytest.raises(profkit.Error) as caught:
        profkit.merge([b"---\nHeapProfileRecords:\n- nothing\n"], names=["wrong.yaml"])
    assert caught.value.kind == "nothing_left"
    assert profkit.doctor(cut(DUMP)).code == 1
    damaged = bytearray(SECTION.read_bytes())
    damaged[-60:] = b"\xff" * 60
    assert profkit.doctor(damaged).code == 1
    shown = profkit.show(damaged)
    assert shown.code == 1 and shown["error_count"] > 0
    # The checksum of a part finds each damage.
    merger = profkit.Merger()
    merger.add(DUMP, ids=["dump"])
    part = bytearray(merger.to_bytes())
    part[len(part) - 9] ^= 1
    with pytest.raises(profkit.Error) as caught:
        profkit.Merger.from_bytes(part)
    assert (caught.value.kind, caught.value.file) == ("checksum_mismatch", "a part")
    assert "HEAP" in str(caught.value)


def test_what_engines_call_with_sample_and_heap_profiles(tmp_path):
    samples = [{"uri": str(path), "id": path.name} for path in SAMPLES]
    gone = {"uri": str(tmp_path / "gone.prof")}
    # A task whose inputs are all missing or damaged does not know their kind, and fits those of each.
    lost = fleet.premerge([gone, {"uri": str(FIXTURES / "MANIFEST")}])
    part = fleet.combine([lost, fleet.premerge(samples[:1]), fleet.premerge(samples[1:]), fleet.premerge(samples[:1])])
    merged = fleet.finish(part, text=True, max_dropped=2)
    assert merged.bytes == profkit.merge(SAMPLES, order_free=True, text=True).bytes
    assert merged.report["totals"]["files"] == len(SAMPLES) + 2
    heap = fleet.combine([fleet.premerge([{"uri": str(DUMP), "id": "dump"}]), lost])
    merged = fleet.finish(heap, binaries=[PROGRAM], max_dropped=2)
    assert merged.bytes == profkit.merge(DUMP, order_free=True, binaries=[PROGRAM]).bytes
