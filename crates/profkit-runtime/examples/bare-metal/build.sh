#!/bin/sh
# profkit runtime --for clang-22 --target aarch64-none-elf -o libprofkit_profile.a
set -eu
here=$(dirname "$0")
${CLANG:-clang-22} --target=aarch64-none-elf -O1 -ffreestanding -mstrict-align -fprofile-instr-generate -c "$here/main.c" -o main.o
${LLD:-ld.lld-22} --image-base=0x40200000 -e _start main.o libprofkit_profile.a -o bare
