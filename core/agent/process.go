package agent

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// A stream holds one descriptor towards the client and one towards the upstream; the rest is for adapters and files.
const (
	descriptorsPerStream = 2
	descriptorsReserved  = 64
)

// raiseDescriptorLimit raises the soft limit to the hard one and returns how many streams that allows at once.
func raiseDescriptorLimit() (streams uint64, err error) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("read descriptor limit: %w", err)
	}
	if limit.Cur < limit.Max {
		raised := unix.Rlimit{Cur: limit.Max, Max: limit.Max}
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &raised); err != nil {
			return streamsWithin(limit.Cur), fmt.Errorf("raise descriptor limit: %w", err)
		}
		limit = raised
	}
	return streamsWithin(limit.Cur), nil
}

func streamsWithin(descriptors uint64) uint64 {
	if descriptors <= descriptorsReserved {
		return 0
	}
	return (descriptors - descriptorsReserved) / descriptorsPerStream
}
