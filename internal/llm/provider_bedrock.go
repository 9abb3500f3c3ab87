package llm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"yardmaster/internal/lazy"
	"yardmaster/internal/llm/frames"
)

// Bedrock sells the models of others at Amazon. The gateway calls those of Anthropic there:
// their calls and answers are those of the Messages API, so that nothing is translated.
const Bedrock Provider = "bedrock"

var _ = known(adapter{
	provider: Bedrock,
	place:    7,
	apis:     []API{Messages, ModelList},
	model:    "global.anthropic.claude-sonnet-4-5-20250929-v1:0",
	list:     "maxResults=1000",
	listed:   bedrockModels,
	form:     "REGION:ACCESS_KEY_ID:SECRET_ACCESS_KEY, and :SESSION_TOKEN behind it if there is one",
	fits:     func(key string) bool { _, ok := bedrockKeyOf(key); return ok },
	locate:   bedrockAddress,
	shape:    bedrockBody,
	opened: func(r *http.Response) {
		if strings.HasPrefix(r.Header.Get("Content-Type"), frames.Type) {
			r.Body, r.ContentLength = frames.Events(r.Body), -1
			r.Header.Set("Content-Type", "text/event-stream")
		}
	},
	authorize: bedrockSign,
	// A model in another region, as in eu.anthropic.claude-…, has the price of the model.
	maker: func(model string) (Provider, string) {
		region, name, _ := strings.Cut(model, ".")
		if region == "global" || !strings.HasPrefix(name, "anthropic.") {
			name = model
		}
		return Bedrock, name
	},
})

// bedrockKey is a key of Bedrock: the region stands in it, because the key is for all of them.
type bedrockKey struct {
	region string
	aws.Credentials
}

var awsRegion = lazy.New(`^[a-z]{2}(-[a-z]+)+-\d{1,2}$`)

func bedrockKeyOf(key string) (k bedrockKey, ok bool) {
	parts := strings.Split(key, ":")
	if len(parts) < 3 || len(parts) > 4 || !awsRegion.MatchString(parts[0]) || parts[1] == "" || parts[2] == "" {
		return k, false
	}
	k = bedrockKey{parts[0], aws.Credentials{AccessKeyID: parts[1], SecretAccessKey: parts[2]}}
	if len(parts) == 4 {
		k.SessionToken = parts[3]
	}
	return k, true
}

// bedrockModel is the form of a model's name: an id, an id in a region, or an ARN.
var bedrockModel = lazy.New(`^[A-Za-z0-9][A-Za-z0-9._:/-]*$`)

// bedrockAddress is where a call goes. The list of models is at an address of its own.
func bedrockAddress(r Route, e Endpoint, model string, stream bool) (*url.URL, error) {
	k, ok := bedrockKeyOf(r.Key)
	if !ok {
		return nil, errors.New("the key of bedrock is not of its form")
	}
	host, path, action := "bedrock", "/inference-profiles", ""
	if e.API != ModelList {
		if host, path, action = "bedrock-runtime", "/model/", "/invoke"; stream {
			action = "/invoke-with-response-stream"
		}
		if !bedrockModel.MatchString(model) {
			return nil, errors.New("the model's name cannot be part of an address")
		}
		path += model
	}
	base := r.BaseURL
	if base == "" {
		base = "https://" + host + "." + k.region + ".amazonaws.com"
	}
	u, err := url.Parse(base)
	if err != nil {
		return nil, err
	}
	folder := strings.TrimRight(u.Path, "/")
	u.RawPath = folder + path + action
	if e.API != ModelList {
		u.RawPath = folder + "/model/" + url.QueryEscape(model) + action
	}
	u.Path = folder + path + action
	return u, nil
}

// bedrockBody is the body of a call as Bedrock takes it: the address names the model and
// asks for events, and the body says of which version of the API it is.
func bedrockBody(body []byte, h http.Header) []byte {
	betas := h.Values("Anthropic-Beta")
	for name := range h {
		if strings.HasPrefix(name, "Anthropic-") {
			h.Del(name)
		}
	}
	out := append(make([]byte, 0, len(body)+128), `{"anthropic_version":"bedrock-2023-05-31"`...)
	s := cursor{b: body}
	for s.take('{'); !s.take('}'); s.take(',') {
		s.space()
		from := s.at
		key, _ := s.key()
		value, ok := s.value()
		if !ok {
			break // ParseRequest has read it before
		}
		switch key {
		case "model", "stream", "anthropic_version":
			continue
		case "anthropic_beta":
			betas = nil
		}
		out = append(append(out, ','), body[from:value.to]...)
	}
	if len(betas) > 0 {
		names := strings.FieldsFunc(strings.Join(betas, ","), func(c rune) bool { return c == ',' || c == ' ' })
		text, _ := json.Marshal(names) // strings always encode
		out = append(append(out, `,"anthropic_beta":`...), text...)
	}
	return append(out, '}')
}

// bedrockSign signs a call that is whole otherwise.
func bedrockSign(r *http.Request, key string, _ API) {
	k, ok := bedrockKeyOf(key)
	if !ok {
		return // Amazon refuses it
	}
	sum := sha256.New()
	if r.GetBody != nil {
		body, err := r.GetBody()
		if err != nil {
			return
		}
		_, _ = io.Copy(sum, body) // it is in memory
	}
	_ = v4.NewSigner().SignHTTP(context.Background(), k.Credentials, r, hex.EncodeToString(sum.Sum(nil)), "bedrock", k.region, time.Now())
}

// bedrockModels are the models of the list that the gateway can call.
func bedrockModels(text []byte) (names []string, err error) {
	var list struct {
		Profiles []struct {
			ID string `json:"inferenceProfileId"`
		} `json:"inferenceProfileSummaries"`
	}
	err = json.Unmarshal(text, &list)
	for _, p := range list.Profiles {
		if strings.Contains(p.ID, "anthropic.") {
			names = append(names, p.ID)
		}
	}
	return names, err
}
