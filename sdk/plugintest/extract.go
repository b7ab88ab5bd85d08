package plugintest

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

// request is a client's request as the rules of identity see it.
type request struct {
	header http.Header
	body   []byte
}

// extract finds a value by ordered rules, as the daemon does; "" when none hits.
func extract(rules []*providerv1.Extractor, r request) string {
	for _, rule := range rules {
		if value := extractOne(rule, r); value != "" {
			return value
		}
	}
	return ""
}

func extractOne(rule *providerv1.Extractor, r request) string {
	var value string
	if rule.GetHeader() != "" {
		value = r.header.Get(rule.GetHeader())
	} else {
		value = at(rule.GetBodyPointer(), r.body)
	}
	if rule.GetInnerPointer() != "" {
		value = at(rule.GetInnerPointer(), []byte(value))
	}
	if rule.GetPattern() == "" || value == "" {
		return value
	}
	pattern, err := regexp.Compile(rule.GetPattern())
	if err != nil {
		return ""
	}
	groups := pattern.FindStringSubmatch(value[:min(len(value), 1024)])
	if len(groups) != 2 {
		return ""
	}
	return groups[1]
}

// at follows a JSON pointer (RFC 6901) to a string, number or boolean.
func at(pointer string, document []byte) string {
	var value any
	decoder := json.NewDecoder(strings.NewReader(string(document)))
	decoder.UseNumber()
	if decoder.Decode(&value) != nil {
		return ""
	}
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for step := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		step = unescape.Replace(step)
		switch container := value.(type) {
		case map[string]any:
			value = container[step]
		case []any:
			index, err := strconv.Atoi(step)
			if err != nil || index < 0 || index >= len(container) {
				return ""
			}
			value = container[index]
		default:
			return ""
		}
	}
	switch found := value.(type) {
	case string:
		return found
	case json.Number:
		return found.String()
	case bool:
		return strconv.FormatBool(found)
	}
	return ""
}
