// Package proxy is the HTTP front: host checks, routes, identity, attempts, replay, the commit boundary and the scanner of
// streamed answers. It moves the bytes; what they mean is declared by the provider's profile or judged by its adapter.
//
// On the path of a healthy request it calls no adapter, waits for no disk (bound sessions) and parses nothing but what
// the profile names. It declares what it needs of state and adapters in ports.go; core/agent joins the parts.
package proxy
