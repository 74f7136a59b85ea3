#!/bin/sh
set -eu
exec qemu-system-aarch64 -M virt -cpu cortex-a53 -nographic -nic none -semihosting -kernel bare
