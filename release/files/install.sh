#!/bin/sh
# Installs Yardmaster from a release: install.sh ADDRESS [FOLDER [VERSION]]
#
# ADDRESS is where the files of the release are: one of the web, or the path of a folder. It is not trusted: what comes from
# there must be signed by the key below, for the version that is asked for, which is
# this script's own unless given. An older version than the installed one is refused.
# It takes curl or wget (for an address), tar, sha256sum or shasum, and minisign or openssl 3.
set -eu

key=${YARDMASTER_KEY:-@KEY@}
version=@VERSION@

die() {
  echo "install: $*" >&2
  exit 1
}

[ $# -ge 1 ] || die "say where the release is: install.sh ADDRESS [FOLDER [VERSION]]"
from=${1%/}
into=${2:-/usr/local/bin}
case $into in /*) ;; *) into=$PWD/$into ;; esac
version=v$(printf %s "${3:-$version}" | sed 's/^v//')

# A server that sends without an end must not fill the disk.
limit=200000000
get() {
  case $from in /*) cp "$from/$1" "$1" && return ;; esac
  if command -v curl >/dev/null; then
    curl -fsS --max-filesize $limit -o "$1" "$from/$1"
  else
    wget -q -O - "$from/$1" | head -c $limit >"$1" && [ -s "$1" ]
  fi || die "cannot fetch $from/$1"
}

# The same check as minisign's, by openssl: the signature of the file, and the one over
# that signature and the comment.
check_by_openssl() {
  sed -n 2p "$1.minisig" | base64 -d >signature.all
  sed -n 3p "$1.minisig" | sed 's/^trusted comment: //' | tr -d '\n' >comment
  sed -n 4p "$1.minisig" | base64 -d >second
  printf %s "$key" | base64 -d >key.all
  [ "$(head -c 2 signature.all)" = ED ] && [ "$(wc -c <signature.all)" -eq 74 ] && [ "$(wc -c <key.all)" -eq 42 ] || return 1
  [ "$(head -c 10 signature.all | tail -c 8 | base64)" = "$(head -c 10 key.all | tail -c 8 | base64)" ] || return 1
  { printf '\060\052\060\005\006\003\053\145\160\003\041\000' && tail -c 32 key.all; } >key.der
  tail -c 64 signature.all >signature
  openssl dgst -blake2b512 -binary "$1" >digest
  verify digest signature && cat signature comment >signed && verify signed second
}

verify() {
  openssl pkeyutl -verify -pubin -inkey key.der -keyform DER -rawin -in "$1" -sigfile "$2" >/dev/null 2>&1
}

check_signature() {
  if command -v minisign >/dev/null; then
    minisign -Vq -m "$1" -P "$key" >/dev/null 2>&1
  elif command -v openssl >/dev/null; then
    check_by_openssl "$1"
  else
    die "minisign or openssl is needed to check the signature"
  fi || die "the signature of $1 does not hold"
}

check_sum() {
  if command -v sha256sum >/dev/null; then sha256sum -c "$1"; else shasum -a 256 -c "$1"; fi >/dev/null 2>&1
}

# The later of two versions. What follows a hyphen comes before the version without it.
later() {
  printf '%s\n%s\n' "$1" "$2" | tr - '~' | sort -V | tail -n 1 | tr '~' -
}

case $(uname -m) in
x86_64 | amd64) machine=amd64 ;;
aarch64 | arm64) machine=arm64 ;;
*) die "there is no program for $(uname -m)" ;;
esac
name=yardmaster_${version#v}_$(uname -s | tr '[:upper:]' '[:lower:]')_$machine

at=$(mktemp -d)
trap 'rm -rf "$at"' EXIT
cd "$at"
get SHA256SUMS
get SHA256SUMS.minisig
check_signature SHA256SUMS
# A release from before, signed as well, must not pass for this one.
said=$(sed -n 3p SHA256SUMS.minisig)
[ "$said" = "trusted comment: yardmaster file:SHA256SUMS version:$version" ] || die "what is there is no release $version, but signed as: $said"
get "$name.tar.gz"
grep "  $name.tar.gz\$" SHA256SUMS >sum || die "the release has no $name.tar.gz"
check_sum sum || die "$name.tar.gz is not what was signed"
tar -xzf "$name.tar.gz" "$name/yardmaster"

if [ -x "$into/yardmaster" ] && [ "${YARDMASTER_DOWNGRADE:-}" != yes ]; then
  have=$("$into/yardmaster" version | cut -d ' ' -f 2)
  [ "$(later "$have" "$version")" = "$version" ] ||
    die "$have is installed, which is newer than $version. An older program does not know the data of a newer one: put a backup back (YARDMASTER_DOWNGRADE=yes installs it all the same)"
fi
mkdir -p "$into"
cp "$name/yardmaster" "$into/.yardmaster.new"
chmod 755 "$into/.yardmaster.new"
mv "$into/.yardmaster.new" "$into/yardmaster" # what runs keeps the old file
"$into/yardmaster" version
