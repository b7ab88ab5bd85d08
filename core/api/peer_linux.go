package api

import "golang.org/x/sys/unix"

func peerOfSocket(fd int) int {
	credentials, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0
	}
	return int(credentials.Pid)
}
