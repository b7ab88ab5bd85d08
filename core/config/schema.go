package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	pluginv1 "github.com/noria-dev/noria/sdk/proto/noria/plugin/v1"
	"github.com/noria-dev/noria/sdk/wire"
)

// schema is a plugin's schema of one block, checked: it came from outside.
type schema struct {
	attributes []*pluginv1.Attribute
	// body also names what the host decoded before, so that a misspelt name is compared with those too.
	body *hcl.BodySchema
}

func newSchema(from *pluginv1.Schema, hostNames, hostBlocks []string) (*schema, error) {
	s := &schema{body: &hcl.BodySchema{}}
	if len(from.GetAttributes()) > wire.MaxAttributes {
		return nil, fmt.Errorf("it has more than %d attributes", wire.MaxAttributes)
	}
	seen := map[string]bool{}
	for _, a := range from.GetAttributes() {
		name := a.GetName()
		switch {
		case !wire.IsAttribute(name):
			return nil, errors.New("an attribute's name is not in snake_case")
		case slices.Contains(hostNames, name):
			return nil, fmt.Errorf("attribute %q belongs to the host", name)
		case seen[name]:
			return nil, fmt.Errorf("attribute %q is there twice", name)
		case typeOf(a) == cty.NilType:
			return nil, fmt.Errorf("attribute %q has a type that this host does not know", name)
		case a.GetDefaultJson() != "":
			if _, err := ctyjson.Unmarshal([]byte(a.GetDefaultJson()), typeOf(a)); err != nil {
				return nil, fmt.Errorf("the default of attribute %q does not have its type", name)
			}
		}
		seen[name] = true
		s.attributes = append(s.attributes, a)
		s.body.Attributes = append(s.body.Attributes, hcl.AttributeSchema{Name: name, Required: a.GetRequired()})
	}
	for _, name := range hostNames {
		if slices.Contains(hostBlocks, name) {
			s.body.Blocks = append(s.body.Blocks, hcl.BlockHeaderSchema{Type: name, LabelNames: blockLabels(name)})
		} else {
			s.body.Attributes = append(s.body.Attributes, hcl.AttributeSchema{Name: name})
		}
	}
	return s, nil
}

func blockLabels(name string) []string {
	if name == "account" {
		return []string{"name"}
	}
	return nil
}

func typeOf(a *pluginv1.Attribute) cty.Type {
	switch a.GetType() {
	case pluginv1.AttributeType_ATTRIBUTE_TYPE_STRING,
		pluginv1.AttributeType_ATTRIBUTE_TYPE_DURATION,
		pluginv1.AttributeType_ATTRIBUTE_TYPE_PATH:
		return cty.String
	case pluginv1.AttributeType_ATTRIBUTE_TYPE_BOOL:
		return cty.Bool
	case pluginv1.AttributeType_ATTRIBUTE_TYPE_NUMBER:
		return cty.Number
	case pluginv1.AttributeType_ATTRIBUTE_TYPE_STRING_LIST:
		return cty.List(cty.String)
	case pluginv1.AttributeType_ATTRIBUTE_TYPE_STRING_MAP:
		return cty.Map(cty.String)
	}
	return cty.NilType
}

// bySchema decodes a block into a JSON object with every attribute that is set or has a default.
func (f *File) bySchema(body hcl.Body, s *schema) []byte {
	content, diags := body.Content(s.body)
	f.found = append(f.found, diags...)
	values := map[string]json.RawMessage{}
	for _, a := range s.attributes {
		if !a.GetSensitive() {
			f.show(body, a.GetName())
		}
		value, ok := cty.NilVal, false
		if attr := content.Attributes[a.GetName()]; attr != nil {
			value, ok = f.value(attr, a)
		} else if a.GetDefaultJson() != "" {
			value, _ = ctyjson.Unmarshal([]byte(a.GetDefaultJson()), typeOf(a))
			ok = !value.IsNull()
		}
		if !ok {
			continue
		}
		if a.GetType() == pluginv1.AttributeType_ATTRIBUTE_TYPE_PATH {
			value = cty.StringVal(f.expand(value.AsString()))
		}
		raw, err := ctyjson.Marshal(value, typeOf(a))
		if err != nil {
			// Number literals of absurd size are all that is left to fail here.
			f.fail(valueRange(body, a.GetName()), "Invalid value", "%s cannot be written as JSON.", a.GetName())
			continue
		}
		values[a.GetName()] = raw
	}
	encoded, err := json.Marshal(values)
	if err != nil {
		f.fail(body.MissingItemRange().Ptr(), "Invalid value", "The block cannot be written as JSON.")
	}
	return encoded
}

// value evaluates one attribute; ok is false when it is null or wrong.
func (f *File) value(attr *hcl.Attribute, a *pluginv1.Attribute) (value cty.Value, ok bool) {
	value, diags := attr.Expr.Value(f.eval)
	f.found = append(f.found, diags...)
	if diags.HasErrors() || value.IsNull() {
		return cty.NilVal, false
	}
	at := attr.Expr.Range().Ptr()
	value, err := convert.Convert(value, typeOf(a))
	if err != nil || !value.IsWhollyKnown() || hasNull(value) {
		f.fail(at, "Wrong type", "%s must be %s.", attr.Name, typeInWords(a.GetType()))
		return cty.NilVal, false
	}
	if a.GetType() == pluginv1.AttributeType_ATTRIBUTE_TYPE_DURATION {
		if _, err := time.ParseDuration(value.AsString()); err != nil {
			f.fail(at, "Invalid duration", "%s is a number with a unit, such as \"45s\", \"10m\" or \"720h\".", attr.Name)
			return cty.NilVal, false
		}
	}
	return value, true
}

func hasNull(value cty.Value) bool {
	if !value.CanIterateElements() {
		return value.IsNull()
	}
	for _, element := range value.Elements() {
		if element.IsNull() {
			return true
		}
	}
	return false
}

func typeInWords(t pluginv1.AttributeType) string {
	switch t {
	case pluginv1.AttributeType_ATTRIBUTE_TYPE_BOOL:
		return "true or false"
	case pluginv1.AttributeType_ATTRIBUTE_TYPE_NUMBER:
		return "a number"
	case pluginv1.AttributeType_ATTRIBUTE_TYPE_DURATION:
		return `a duration, such as "45s"`
	case pluginv1.AttributeType_ATTRIBUTE_TYPE_PATH:
		return "a file path in quotes"
	case pluginv1.AttributeType_ATTRIBUTE_TYPE_STRING_LIST:
		return `a list of strings, such as ["a", "b"]`
	case pluginv1.AttributeType_ATTRIBUTE_TYPE_STRING_MAP:
		return `a map of strings, such as { a = "b" }`
	}
	return "a string in quotes"
}
