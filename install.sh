#!/bin/sh
# Installs the command profkit, its manual pages and its completions, from an archive of a release:
#
#   install.sh [VERSION]
#
# PREFIX is where to (~/.local if it is not set), FROM the folder or address that has the archives and SHA256SUMS (that of the
# release on GitHub). Nothing is changed unless the archive has the checksum that SHA256SUMS has.
set -eu

version=${1:-0.1.0}
prefix=${PREFIX:-$HOME/.local}
from=${FROM:-https://github.com/profkit/profkit/releases/download/v$version}

fail() {
  echo "install.sh: $*" >&2
  exit 1
}

[ "$(uname -s)" = Linux ] || fail "there are archives for Linux only; with Rust: cargo install --locked profkit-cli"
case $(uname -m) in
x86_64 | amd64)
  # Without glibc the archive that needs no library.
  if getconf GNU_LIBC_VERSION > /dev/null 2>&1; then libc=gnu; else libc=musl; fi
  target=x86_64-unknown-linux-$libc
  ;;
aarch64 | arm64) target=aarch64-unknown-linux-gnu ;;
*) fail "there is no archive for $(uname -m); with Rust: cargo install --locked profkit-cli" ;;
esac
name=profkit-$version-$target

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# fetch FILE: into the temporary folder.
fetch() {
  case $from in
  http://* | https://*)
    if command -v curl > /dev/null; then
      curl --fail --silent --show-error --location --output "$folder/$1" "$from/$1"
    elif command -v wget > /dev/null; then
      wget --quiet --output-document "$folder/$1" "$from/$1"
    else
      fail "curl or wget is needed"
    fi
    ;;
  *) cp "$from/$1" "$folder/$1" ;;
  esac || fail "$from has no $1"
}

fetch SHA256SUMS
fetch "$name.tar.gz"
grep " $name.tar.gz\$" "$folder/SHA256SUMS" > "$folder/sum" || fail "SHA256SUMS does not name $name.tar.gz"
(cd "$folder" && sha256sum --check --status sum) || fail "$name.tar.gz has another checksum than in SHA256SUMS; nothing was installed"

mkdir -p "$prefix"
tar --extract --file "$folder/$name.tar.gz" --directory "$folder"
cp -R "$folder/$name/bin" "$folder/$name/share" "$prefix/"
echo "installed $("$prefix/bin/profkit" --version | head -n 1) as $prefix/bin/profkit"
case :$PATH: in
*:"$prefix/bin":*) ;;
*) echo "add $prefix/bin to PATH to call it as profkit" ;;
esac
