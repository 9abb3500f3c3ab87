package sandbox

import (
	"fmt"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Separate tells whether agents run as another user than this process. It is true
// for root, unless root cannot become another user, as in a namespace of one user
// or without capabilities.
var Separate = sync.OnceValue(func() bool {
	if os.Geteuid() != 0 {
		return false
	}
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if unix.Capget(&head, &sets[0]) == nil {
		for _, c := range []uint{
			unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_KILL, unix.CAP_SETGID, unix.CAP_SETUID,
		} {
			if sets[0].Effective&(1<<c) == 0 {
				return false
			}
		}
	}
	return mapped("/proc/self/uid_map") && mapped("/proc/self/gid_map")
})

// mapped tells whether a user namespace with this map has the agents' user.
func mapped(file string) bool {
	text, err := os.ReadFile(file)
	if err != nil {
		return true // a kernel without user namespaces
	}
	for line := range strings.Lines(string(text)) {
		var inside, outside, count uint64
		if _, err := fmt.Sscan(line, &inside, &outside, &count); err == nil && inside <= nobody && nobody < inside+count {
			return true
		}
	}
	return false
}
