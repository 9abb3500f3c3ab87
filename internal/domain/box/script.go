package box

import "fmt"

// script downloads nothing: a machine should run only programs that its
// operator has installed.
const script = `#!/bin/sh
# Joins this machine to the Yardmaster server it came from.
set -eu
if ! command -v yardmaster >/dev/null 2>&1; then
	echo 'yardmaster is not installed on this machine.' >&2
	printf 'Copy the yardmaster program that runs the server at %%s to a folder on the PATH, then run this again.\n' %[1]s >&2
	exit 127
fi
`

// detached joins as the script does that /join serves, from a connection that will end: the
// box goes on without it, and the script ends once the machine has its identity. The token is
// in no command line.
const detached = `YARDMASTER_ENROLL_TOKEN=%[2]s
export YARDMASTER_ENROLL_TOKEN
cd
umask 077
if [ -e yardmaster-box/identity.json ]; then
	echo 'This machine is a box already: its identity is in ~/yardmaster-box.' >&2
	exit 1
fi
nohup yardmaster box join --url %[1]s >yardmaster-box.log 2>&1 </dev/null &
box=$!
unset YARDMASTER_ENROLL_TOKEN
tries=%[3]d
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
func Detached(url, token string, seconds int) string {
	return fmt.Sprintf(script, quote(url)) + fmt.Sprintf(detached, quote(url), quote(token), seconds)
}
