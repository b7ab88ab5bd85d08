package proxy

import (
	"fmt"
	"strings"

	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

// route is one kind of request that a provider's client makes.
type route struct {
	method string
	// exact is the path when it has no wildcard; else segments are compared one by one.
	exact    string
	segments []string
	kind     providerv1.RouteKind
	// refuseUpgrade answers 426, so that the client falls back to HTTP.
	refuseUpgrade bool
	retryable     bool
	local         *template
}

func compileRoutes(declared []*providerv1.Route) ([]route, error) {
	if len(declared) == 0 || len(declared) > maxRoutes {
		return nil, fmt.Errorf("routes: must be 1 to %d", maxRoutes)
	}
	routes := make([]route, len(declared))
	for i, d := range declared {
		r, err := compileRoute(d)
		if err != nil {
			return nil, fmt.Errorf("routes[%d].%w", i, err)
		}
		routes[i] = r
	}
	return routes, nil
}

func compileRoute(d *providerv1.Route) (route, error) {
	r := route{method: d.GetMethod(), kind: d.GetKind(), refuseUpgrade: d.GetRefuseUpgrade(), retryable: d.GetRetryable()}
	if r.method == "" || len(r.method) > 16 || strings.Trim(r.method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return r, fmt.Errorf("method: must be an upper-case HTTP method")
	}
	path := d.GetPath()
	if len(path) > maxName || !cleanPath(path) {
		return r, fmt.Errorf("path: must be a clean absolute path")
	}
	if strings.Contains(path, "*") {
		r.segments = strings.Split(path[1:], "/")
		for i, segment := range r.segments {
			wild := segment == "*" || segment == "**" && i == len(r.segments)-1
			if strings.Contains(segment, "*") && !wild {
				return r, fmt.Errorf("path: * stands for a whole segment, ** for the rest at the end")
			}
		}
	} else {
		r.exact = path
	}
	switch r.kind {
	case providerv1.RouteKind_ROUTE_KIND_TURN, providerv1.RouteKind_ROUTE_KIND_PLACED,
		providerv1.RouteKind_ROUTE_KIND_AUX, providerv1.RouteKind_ROUTE_KIND_OWN:
	case providerv1.RouteKind_ROUTE_KIND_LOCAL:
		local, err := compileTemplate(d.GetLocal())
		if err != nil {
			return r, fmt.Errorf("local: %w", err)
		}
		r.local = local
	default:
		return r, fmt.Errorf("kind: unknown")
	}
	return r, nil
}

// match finds the route of a method and a clean path.
func (p *Profile) match(method, path string) (*route, bool) {
	for i := range p.routes {
		if r := &p.routes[i]; r.method == method && r.matches(path) {
			return r, true
		}
	}
	return nil, false
}

func (r *route) matches(path string) bool {
	if r.segments == nil {
		return r.exact == path
	}
	rest := path[1:]
	for i, want := range r.segments {
		if want == "**" {
			return rest != ""
		}
		segment, after, more := strings.Cut(rest, "/")
		if segment == "" || want != "*" && want != segment || more == (i == len(r.segments)-1) {
			return false
		}
		rest = after
	}
	return true
}

// cleanPath reports whether path is absolute, of printable ASCII, and free of everything that two programs could read
// differently: empty and dot segments, backslashes, escaped separators. A trailing slash is an empty segment, alone it
// is the root.
func cleanPath(path string) bool {
	if path == "/" {
		return true
	}
	if path == "" || path[0] != '/' {
		return false
	}
	for i := range len(path) {
		if c := path[i]; c <= ' ' || c >= 0x7f || c == '\\' || c == '#' || c == '?' {
			return false
		}
	}
	for segment := range strings.SplitSeq(path[1:], "/") {
		if segment == "" || !cleanSegment(segment) {
			return false
		}
	}
	return true
}

func cleanSegment(segment string) bool {
	if !strings.Contains(segment, "%") {
		return segment != "." && segment != ".."
	}
	lower := strings.ToLower(segment)
	for _, escape := range []string{"%2e", "%2f", "%5c", "%00", "%25"} {
		if strings.Contains(lower, escape) {
			return false
		}
	}
	return true
}

// splitPrefix takes /k/KEY and /PROVIDER off a path. rest begins with a slash.
func splitPrefix(path string) (key, provider, rest string, ok bool) {
	if keyed, has := strings.CutPrefix(path, "/k/"); has {
		if key, path, has = strings.Cut(keyed, "/"); !has || key == "" {
			return "", "", "", false
		}
		path = "/" + path
	}
	provider, rest, _ = strings.Cut(path[1:], "/")
	return key, provider, "/" + rest, provider != ""
}
