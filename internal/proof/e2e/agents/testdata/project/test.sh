#!/bin/sh
# Tests of count.sh.
cd "$(dirname "$0")" || exit 1
got=$(printf 'one two\nthree\n' | sh count.sh)
[ "$got" = 3 ] || { echo "FAIL  three words are $got"; exit 1; }
echo "ok    three words"
