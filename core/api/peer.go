package api

import (
	"context"
	"net"
	"syscall"
)

type peerKey struct{}

// withPeer keeps who connected for the calls of the connection.
func withPeer(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, peerKey{}, peerPID(conn))
}

// peerOf is the id of the process that makes a call; 0 when the system does not tell.
func peerOf(ctx context.Context) int {
	pid, _ := ctx.Value(peerKey{}).(int)
	return pid
}

func peerPID(conn net.Conn) (pid int) {
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return 0
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0
	}
	if raw.Control(func(fd uintptr) { pid = peerOfSocket(int(fd)) }) != nil {
		return 0
	}
	return pid
}
