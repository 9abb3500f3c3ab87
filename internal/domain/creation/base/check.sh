#!/bin/sh
# Runs every check of this repository. Ends with 0 if all of them pass.
set -u
cd "$(dirname "$0")/.." || exit 2
failed=""

# run NAME COMMAND... runs one check, and goes on after a failure.
run() {
  name=$1
  shift
  printf '== %s\n' "$name"
  "$@" || failed="$failed, $name"
}

no_conflict_markers() { ! git grep -nE '^(<<<<<<<|>>>>>>>)( |$)' -- .; }
no_trailing_space() { ! git grep -nIE '[[:blank:]]+$' -- . ':!*.md'; }
scripts_parse() {
  for script in scripts/*; do
    case "$(head -n 1 "$script")" in
      '#!/bin/sh'*) sh -n "$script" || return 1 ;;
    esac
  done
}

run 'conflict markers' no_conflict_markers
run 'trailing space' no_trailing_space
run 'scripts' scripts_parse

# The checks of each stack that is here. Replace them by what fits, and keep one command.
[ -f go.mod ] && run 'go vet' go vet ./... && run 'go test' go test ./...
[ -f package.json ] && run 'npm test' npm test
[ -f Cargo.toml ] && run 'cargo test' cargo test
[ -f pyproject.toml ] && run 'pytest' python3 -m pytest

if [ -n "$failed" ]; then
  printf 'failed: %s\n' "${failed#, }" >&2
  exit 1
fi
echo 'All checks passed.'
