package llm

import "net/http"

// Tap is asked, for every billed call that is made, whether somebody keeps a copy of it.
type Tap interface {
	// Keep returns what takes the copy; nil: nobody does. It must not wait.
	Keep(g Grant, t Tapped) Copy
}

// Tapped is a call of which a copy may be kept.
type Tapped struct {
	API      API
	Provider Provider
	Model    string // the name sent to the provider
	Token    string // of the caller, a secret
	// Body is what the caller has sent. It must neither be changed nor be kept.
	Body []byte
}

// Copy takes a copy of one call as the call goes on. Its methods are called one after
// another, and none of them waits or keeps the bytes that it is given.
type Copy interface {
	// Begun takes the head of the answer that the caller gets. It is called at most once.
	Begun(status int, mediaType string)
	// Answer takes the next bytes of that answer.
	Answer(p []byte)
	// Ended takes what came of the call. It is called once, at the end, also without an answer.
	Ended(u Usage)
}

// tap returns the writer of the call's answer, and what is to be called when the call is over.
func (c *call) tap(w http.ResponseWriter, token string) (http.ResponseWriter, func()) {
	if c.Tap == nil || !c.at.Billed() {
		return w, func() {}
	}
	kept := c.Tap.Keep(c.grant, Tapped{
		API: c.at.API, Provider: c.route.Provider, Model: c.usage.Model, Token: token, Body: c.q.body,
	})
	if kept == nil {
		return w, func() {}
	}
	return &tapped{ResponseWriter: w, copy: kept}, func() { kept.Ended(c.usage) }
}

// tapped writes an answer, and a copy of it.
type tapped struct {
	http.ResponseWriter
	copy  Copy
	begun bool
}

func (t *tapped) Unwrap() http.ResponseWriter { return t.ResponseWriter }

func (t *tapped) WriteHeader(status int) {
	if !t.begun {
		t.begun = true
		t.copy.Begun(status, t.Header().Get("Content-Type"))
	}
	t.ResponseWriter.WriteHeader(status)
}

func (t *tapped) Write(p []byte) (int, error) {
	if !t.begun {
		t.WriteHeader(http.StatusOK)
	}
	t.copy.Answer(p)
	return t.ResponseWriter.Write(p)
}
