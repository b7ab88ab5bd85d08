// Package config reads noria.hcl: structs, defaults, functions, diagnostics, plugin schemas, fmt, the difference between two
// configurations. It is the only package that imports hcl.
package config
