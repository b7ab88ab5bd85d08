// Package plugin runs adapter processes: catalog, verification, runner, supervision, typed client. Answers of an adapter are data
// from outside and are checked here. Only this package and the SDK import go-plugin.
package plugin
