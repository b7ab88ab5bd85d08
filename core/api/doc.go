// Package api is the control API on a unix socket: types, server, client. It is never served on the proxy listener.
package api
