package box

import (
	"fmt"
	"strings"
)

// Program is a program that a machine without one may run: where its bytes are for the next half
// hour, and what they have to be.
type Program struct{ Target, URL, SHA256 string }

// script joins a machine. It takes the program from the server that it came from, as the server
// itself came here, and runs what has the SHA-256 that stands in the script: a bare machine has
// nothing that checks a signature. A program that is there is left alone.
const script = `#!/bin/sh
# Joins this machine to the Yardmaster server it came from.
set -eu
url=%[1]s
if ! command -v yardmaster >/dev/null 2>&1; then
	from= sum=
	case $(uname -s)/$(uname -m) in
%[2]s	esac
	if [ -z "$from" ]; then
		echo 'yardmaster is not installed on this machine, and its server has no program for it.' >&2
		echo "Copy the program of this machine, in the version that runs at $url, to a folder on the PATH as yardmaster, then run this again." >&2
		exit 127
	fi
	bin=/usr/local/bin
	[ -w "$bin" ] || bin=$HOME/.local/bin
	mkdir -p "$bin"
	new=$bin/.yardmaster.$$
	trap 'rm -f "$new"' EXIT
	if command -v curl >/dev/null 2>&1; then
		curl -fsS --max-filesize 500000000 -o "$new" "$from"
	else
		wget -q -O "$new" "$from"
	fi
	if command -v sha256sum >/dev/null 2>&1; then
		is=$(sha256sum "$new")
	else
		is=$(shasum -a 256 "$new")
	fi
	if [ "${is%%%% *}" != "$sum" ]; then
		echo "What $url handed out is not its program: nothing was installed." >&2
		exit 1
	fi
	chmod 755 "$new"
	mv "$new" "$bin/yardmaster"
	trap - EXIT
	PATH=$bin:$PATH
	export PATH
	echo "The program is in $bin."
fi
YARDMASTER_ENROLL_TOKEN=%[3]s
export YARDMASTER_ENROLL_TOKEN
`

// machines are how a machine of a target calls itself, as uname -s and uname -m.
var machines = map[string]string{
	"linux/amd64": "Linux/x86_64", "linux/arm64": "Linux/aarch64", "darwin/amd64": "Darwin/x86_64", "darwin/arm64": "Darwin/arm64",
}

// begin is the script for a server and a token, which is in no command line: ps would show it.
func begin(url, token string, programs []Program) string {
	var cases strings.Builder
	for _, p := range programs {
		if is, known := machines[p.Target]; known {
			fmt.Fprintf(&cases, "\t%s) from=%s sum=%s ;;\n", is, quote(p.URL), quote(p.SHA256))
		}
	}
	return fmt.Sprintf(script, quote(url), cases.String(), quote(token))
}

// join ends the script that /join serves.
const join = `exec yardmaster box join --url "$url"
`

// detached joins as the script does that /join serves, from a connection that will end: the
// box goes on without it, and the script ends once the machine has its identity.
const detached = `cd
umask 077
if [ -e yardmaster-box/identity.json ]; then
	echo 'This machine is a box already: its identity is in ~/yardmaster-box.' >&2
	exit 1
fi
nohup yardmaster box join --url "$url" >yardmaster-box.log 2>&1 </dev/null &
box=$!
unset YARDMASTER_ENROLL_TOKEN
tries=%[1]d
while kill -0 "$box" 2>/dev/null && [ "$tries" -gt 0 ]; do
	if [ -e yardmaster-box/identity.json ]; then
		echo 'The box runs. Its log is ~/yardmaster-box.log.'
		exit 0
	fi
	tries=$((tries - 1))
	sleep 1
done
kill "$box" 2>/dev/null || true
tail -n 20 yardmaster-box.log >&2
exit 1
`

// Detached is the script that joins a machine from a connection which will end. It waits so
// many seconds for the machine to have joined.
func Detached(url, token string, seconds int, programs []Program) string {
	return begin(url, token, programs) + fmt.Sprintf(detached, seconds)
}

// joinLine is what a person runs on a machine. The token goes through a pipe: printf is the shell's
// own, so that no command line has it.
func joinLine(url, token string) string {
	return "printf 'X-Svc-Enroll-Token: %s' " + quote(token) + " | curl -fsS -H @- " + quote(url+"/join") + " | sh"
}
