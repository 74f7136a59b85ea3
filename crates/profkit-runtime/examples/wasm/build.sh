#!/bin/sh
# profkit runtime --for clang-22 --target wasm32-unknown-unknown -o libprofkit_profile.a
set -eu
here=$(dirname "$0")
${CLANG:-clang-22} --target=wasm32 -O1 -nostdlib -fprofile-instr-generate -c "$here/main.c" -o main.o
${WASM_LD:-wasm-ld-22} --no-entry main.o libprofkit_profile.a -o module.wasm
