#!/bin/sh
# profkit runtime --for rustc --target wasm32-unknown-unknown -o libprofkit_profile.a
#
# rustc has no profiler runtime of its own for this target, and stable releases have no option to do without:
# RUSTC_BOOTSTRAP allows it for this program. With a nightly release the variable is not needed.
set -eu
here=$(dirname "$0")
target=--target=wasm32-unknown-unknown
rustc=${RUSTC:-rustc}
$rustc $target --edition=2021 -O --crate-type=rlib --crate-name=profkit_runtime "$here/../../src/lib.rs" -o libprofkit_runtime.rlib
RUSTC_BOOTSTRAP=1 $rustc $target --edition=2021 -Copt-level=1 --crate-type=cdylib --extern profkit_runtime=libprofkit_runtime.rlib \
  -Cinstrument-coverage -Zno-profiler-runtime -Lnative=. -lstatic=profkit_profile "$here/module.rs" -o module.wasm
