#!/bin/sh
# Tests of slug.sh. Exits with the number of failures.
cd "$(dirname "$0")" || exit 1
failed=0
check() {
  got=$(sh slug.sh "$1")
  if [ "$got" = "$2" ]; then
    echo "ok    slug '$1'"
  else
    echo "FAIL  slug '$1' is '$got', want '$2'"
    failed=$((failed + 1))
  fi
}
check "hello" "hello"
check "hello world" "hello-world"
check "Hello World" "hello-world"
check "What, now?" "what-now"
exit "$failed"
