package agent

import (
	"net"
	"testing"
)

func TestEveryListenerIsReachableFromItsOwnMachine(t *testing.T) {
	for listening, want := range map[string]string{
		"127.0.0.1:4517": "127.0.0.1:4517", "[::1]:4517": "[::1]:4517", "0.0.0.0:4517": "127.0.0.1:4517", "[::]:4517": "[::1]:4517",
		"192.0.2.7:4517": "192.0.2.7:4517",
	} {
		address, err := net.ResolveTCPAddr("tcp", listening)
		if err != nil {
			t.Fatal(err)
		}
		if got := reachable(address); got != want {
			t.Errorf("%s is reached at %s, want %s", listening, got, want)
		}
	}
}
