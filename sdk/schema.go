package sdk

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	pluginv1 "github.com/noria-dev/noria/sdk/proto/noria/plugin/v1"
)

// Path is an attribute that names a file. The daemon expands ~ and resolves it against the directory of noria.hcl before
// the adapter sees it.
type Path string

// attribute is one field of a struct that stands for a block of noria.hcl.
type attribute struct {
	name                string
	field               int
	kind                pluginv1.AttributeType
	required, sensitive bool
	// defaultJSON is nil when there is none.
	defaultJSON json.RawMessage
	doc         string
}

// schemaOf reads the attributes of a block from the tags of a struct, or of what a (nil) pointer to a struct points to.
// nil has no attributes.
func schemaOf(block any) ([]attribute, error) {
	if block == nil {
		return nil, nil
	}
	t := reflect.TypeOf(block)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return attributesOf(t)
}

var attributeName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)

func attributesOf(t reflect.Type) ([]attribute, error) {
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("read schema of %s: not a struct", t)
	}
	var attributes []attribute
	seen := map[string]bool{}
	for i := range t.NumField() {
		a, tagged, err := attributeOf(t.Field(i), i)
		if err != nil {
			return nil, fmt.Errorf("read schema of %s.%s: %w", t, t.Field(i).Name, err)
		}
		if !tagged {
			continue
		}
		if seen[a.name] {
			return nil, fmt.Errorf("read schema of %s.%s: attribute %q is there twice", t, t.Field(i).Name, a.name)
		}
		seen[a.name] = true
		attributes = append(attributes, a)
	}
	return attributes, nil
}

func attributeOf(field reflect.StructField, index int) (a attribute, tagged bool, err error) {
	tag, tagged := field.Tag.Lookup("hcl")
	if !tagged || tag == "-" {
		return attribute{}, false, nil
	}
	if !field.IsExported() {
		return attribute{}, false, fmt.Errorf("field with an hcl tag is not exported")
	}
	name, options, _ := strings.Cut(tag, ",")
	if !attributeName.MatchString(name) {
		return attribute{}, false, fmt.Errorf("attribute name %q is not in snake_case", name)
	}
	a = attribute{name: name, field: index, doc: field.Tag.Get("doc")}
	if a.kind, err = attributeType(field.Type); err != nil {
		return attribute{}, false, err
	}
	a.sensitive = field.Type == reflect.TypeFor[Secret]()
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "":
		case "required":
			a.required = true
		case "sensitive":
			a.sensitive = true
		default:
			return attribute{}, false, fmt.Errorf("unknown option %q, expected required or sensitive", option)
		}
	}
	if text, has := field.Tag.Lookup("default"); has {
		if a.required {
			return attribute{}, false, fmt.Errorf("attribute is required and has a default")
		}
		if a.defaultJSON, err = defaultJSON(a.kind, text); err != nil {
			return attribute{}, false, fmt.Errorf("read default: %w", err)
		}
		if err := decodeValue(a.defaultJSON, reflect.New(field.Type).Elem()); err != nil {
			return attribute{}, false, fmt.Errorf("read default: %w", err)
		}
	}
	return a, true, nil
}

func attributeType(t reflect.Type) (pluginv1.AttributeType, error) {
	switch t {
	case reflect.TypeFor[time.Duration]():
		return pluginv1.AttributeType_ATTRIBUTE_TYPE_DURATION, nil
	case reflect.TypeFor[Path]():
		return pluginv1.AttributeType_ATTRIBUTE_TYPE_PATH, nil
	case reflect.TypeFor[[]string]():
		return pluginv1.AttributeType_ATTRIBUTE_TYPE_STRING_LIST, nil
	case reflect.TypeFor[map[string]string]():
		return pluginv1.AttributeType_ATTRIBUTE_TYPE_STRING_MAP, nil
	}
	switch t.Kind() {
	case reflect.String:
		return pluginv1.AttributeType_ATTRIBUTE_TYPE_STRING, nil
	case reflect.Bool:
		return pluginv1.AttributeType_ATTRIBUTE_TYPE_BOOL, nil
	case reflect.Int, reflect.Int64, reflect.Float64:
		return pluginv1.AttributeType_ATTRIBUTE_TYPE_NUMBER, nil
	}
	return 0, fmt.Errorf("type %s is not supported: use string, bool, int, int64, float64, time.Duration, sdk.Path, sdk.Secret, []string or map[string]string", t)
}

// defaultJSON reads the text of a default tag: lists and maps are JSON, all else is the value as a user would write it.
func defaultJSON(kind pluginv1.AttributeType, text string) (json.RawMessage, error) {
	switch kind {
	case pluginv1.AttributeType_ATTRIBUTE_TYPE_STRING, pluginv1.AttributeType_ATTRIBUTE_TYPE_PATH,
		pluginv1.AttributeType_ATTRIBUTE_TYPE_DURATION:
		return json.Marshal(text)
	case pluginv1.AttributeType_ATTRIBUTE_TYPE_BOOL:
		value, err := strconv.ParseBool(text)
		if err != nil {
			return nil, fmt.Errorf("%q is no bool", text)
		}
		return json.Marshal(value)
	}
	if !json.Valid([]byte(text)) {
		return nil, fmt.Errorf("%q is not JSON", text)
	}
	return json.RawMessage(text), nil
}

func schemaProto(attributes []attribute) *pluginv1.Schema {
	schema := &pluginv1.Schema{}
	for _, a := range attributes {
		schema.Attributes = append(schema.Attributes, &pluginv1.Attribute{
			Name: a.name, Type: a.kind, Required: a.required, Sensitive: a.sensitive,
			DefaultJson: string(a.defaultJSON), Doc: a.doc,
		})
	}
	return schema
}
