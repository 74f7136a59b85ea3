"""A merge on Spark is that of one machine, whatever happens to its tasks. Two executors, each a process of its own."""

import importlib.util
import os
import pathlib
import re
import shutil
import sys

import pytest

import profkit

FIXTURES = pathlib.Path(__file__).parents[3] / "tests/fixtures"
README = FIXTURES / "readme"
HEAP = FIXTURES / "heap"
NEEDED = {"java": shutil.which("java"), "pyspark": importlib.util.find_spec("pyspark")}
MISSING = [name for name, there in NEEDED.items() if not there]
if MISSING and os.environ.get("PROFKIT_REQUIRE_FLEET") == "1":
    pytest.fail(f"PROFKIT_REQUIRE_FLEET=1, but there is no {' and no '.join(MISSING)}", pytrace=False)
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"there is no {' and no '.join(MISSING)}")

# The first task of each executor's Python that adds inputs dies with its process, once.
KILLER = """
import os, signal
import profkit
add = profkit.Merger.add
def dying(self, *arguments, **options):
    try:
        os.close(os.open({marker!r}, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return add(self, *arguments, **options)
    os.kill(os.getpid(), signal.SIGKILL)
profkit.Merger.add = dying
"""


def written(folder, profiles, count):
    """Copies of the profiles in turn, some of them damaged."""
    for number in range(count):
        data = profiles[number % len(profiles)]
        if number % 20 == 7:
            data = data[: len(data) - 100 - number]
        if number % 50 == 9:
            data = b"no profile"
        if number % 50 == 21:
            data = b""
        (folder / f"{number:03}.prof").write_bytes(data)
    return folder


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    """200 raw profiles of three builds, some of them damaged."""
    builds = [(README / f"clang-{release}.profraw").read_bytes() for release in (16, 19, 22)]
    return written(tmp_path_factory.mktemp("shards"), builds, 200)


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    from pyspark.sql import SparkSession

    folder = tmp_path_factory.mktemp("spark")
    marker = folder / "killed"
    (folder / "sitecustomize.py").write_text(KILLER.format(marker=str(marker)))
    # Executors start this Python, which has the package.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.executorEnv.PYTHONPATH", str(folder))
        .config("spark.speculation", "true")
        .config("spark.speculation.interval", "50ms")
        .config("spark.speculation.multiplier", "1.1")
        .config("spark.speculation.quantile", "0.1")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.driver.memory", "512m")
        .config("spark.ui.enabled", "false")
        .config("spark.local.dir", str(folder))
        .config("spark.sql.adaptive.enabled", "true")
        .getOrCreate()
    )
    session.marker = marker
    yield session
    session.stop()


def same_as_one_machine(spark, paths, again, options, finish):
    """Merges the files on Spark, some of them delivered twice, and on this machine. Returns the report of both."""
    from profkit.fleet import spark as fleet

    ids = [f"run-{number}" for number in range(len(paths))]
    rows = [(ids[number], paths[number]) for number in [*range(len(paths)), *again]]
    manifest = spark.createDataFrame(rows, "id string, uri string")
    merged = fleet.merge(manifest, tasks=8, fan_in=4, finish_options=finish, **options)
    alone = profkit.merge(paths, ids=ids, order_free=True, **options, **finish)
    assert merged.bytes == alone.bytes
    for report in (merged.report, alone.report):
        # The files that each call wrote, and those for which it looked for programs.
        del report["outputs"]
        report.pop("correlation", None)
    assert merged.report == alone.report
    assert merged.report["totals"]["files"] == len(paths)
    return alone.report


def test_spark_gives_what_one_machine_gives(spark, shards):
    paths = sorted(str(path) for path in shards.iterdir())
    same_as_one_machine(spark, paths, range(0, 200, 7), {}, {"llvm": 19})
    assert spark.marker.exists(), "no worker was killed"


def test_sample_profiles_are_merged_as_on_one_machine(spark, tmp_path):
    names = ["13-nested-ext", "16-nested-text", "19-nested-binary", "22-nested-ext-md5", "22-nested-ext-compressed"]
    profiles = [(FIXTURES / f"sample/llvm-{name}.sampleprof").read_bytes() for name in names]
    paths = sorted(str(path) for path in written(tmp_path, profiles, 200).iterdir())
    report = same_as_one_machine(spark, paths, range(0, 200, 7), {"drop_symbol_list": True}, {"llvm": 19})
    assert report["totals"]["files_dropped"] >= 4 and report["totals"]["files_kept"] >= 150


def test_heap_profiles_are_merged_as_on_one_machine(spark, tmp_path):
    dump, program = HEAP / "heap.memprofraw", HEAP / "heap.debug"
    data = dump.read_bytes()
    shards = {f"{number}.memprofraw": data for number in range(12)}
    shards["cut.memprofraw"] = data[: len(data) * 2 // 3]
    shards["section.profdata"] = (FIXTURES / "indexed/clang-22-memprof-heap.profdata").read_bytes()
    shards["heap.yaml"] = profkit.merge(dump, binaries=[program], to="memprof-yaml").bytes
    for name, contents in shards.items():
        (tmp_path / name).write_bytes(contents)
    paths = [str(tmp_path / name) for name in shards]
    report = same_as_one_machine(spark, paths, [0, 3, 12, 14], {}, {"binaries": [str(program)]})
    assert report["totals"]["files_kept"] == 14


def test_manifests_that_name_nothing(spark):
    from profkit.fleet import spark as fleet

    with pytest.raises(ValueError, match="2 or more"):
        fleet.merge(spark.createDataFrame([("a",)], "uri string"), fan_in=1)
    with pytest.raises(ValueError, match="expected a column uri"):
        fleet.merge(spark.createDataFrame([("a",)], "path string"))
    with pytest.raises(profkit.Error) as caught:
        fleet.merge(spark.createDataFrame([], "uri string"))
    assert caught.value.kind == "no_inputs"


def test_the_page_runs(spark, shards, tmp_path, monkeypatch):
    page = README.parents[2] / "docs/guide/spark.md"
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S)
    (tmp_path / "raw").mkdir()
    for path in sorted(shards.iterdir())[:12]:
        shutil.copy(path, tmp_path / "raw")
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    for block in blocks:
        exec(compile(block, str(page), "exec"), names)
    assert profkit.read(tmp_path / "all.profdata").kind == "instrumentation"
