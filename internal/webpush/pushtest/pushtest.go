// Package pushtest is a push service with browsers for tests: it checks who sends (RFC
// 8292) and decrypts what is sent (RFC 8188 and 8291), as a browser does.
package pushtest

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/webpush"
)

// Message is what a browser got.
type Message struct {
	Body    []byte
	Topic   string
	Urgency string
	TTL     int
	Key     string // of the server that sent it
	Subject string
}

// Service is a push service.
type Service struct {
	t   testing.TB
	srv *httptest.Server

	mu       sync.Mutex
	browsers map[string]browser // by path
	messages []Message
	answer   func(http.ResponseWriter)
}

type browser struct {
	key  *ecdh.PrivateKey
	auth []byte
}

// New starts a service until the test ends.
func New(t testing.TB) *Service {
	s := &Service{t: t, browsers: map[string]browser{}}
	s.srv = httptest.NewServer(s)
	t.Cleanup(s.srv.Close)
	return s
}

// Browser is the subscription of a new browser.
func (s *Service) Browser() webpush.Subscription {
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	auth := make([]byte, 16)
	if _, err := rand.Read(auth); err != nil {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	path := fmt.Sprint("/push/", len(s.browsers))
	s.browsers[path] = browser{key, auth}
	return webpush.Subscription{
		Endpoint: s.srv.URL + path, P256DH: base64.RawURLEncoding.EncodeToString(key.PublicKey().Bytes()),
		Auth: base64.RawURLEncoding.EncodeToString(auth),
	}
}

// Messages are those that came so far.
func (s *Service) Messages() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Message{}, s.messages...)
}

// Answer has fn answer each request from now on; nil: messages are taken.
func (s *Service) Answer(fn func(http.ResponseWriter)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = fn
}

// ServeHTTP implements http.Handler.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, err := s.take(r)
	if err != nil {
		s.t.Errorf("a push message: %v", err)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if s.answer != nil {
		s.answer(w)
		return
	}
	s.messages = append(s.messages, m)
	w.WriteHeader(http.StatusCreated)
}

func (s *Service) take(r *http.Request) (m Message, err error) {
	b, ok := s.browsers[r.URL.Path]
	if !ok || r.Method != http.MethodPost || r.Header.Get("Content-Encoding") != "aes128gcm" {
		return m, fmt.Errorf("%s %s with the encoding %q", r.Method, r.URL.Path, r.Header.Get("Content-Encoding"))
	}
	m.Topic, m.Urgency = r.Header.Get("Topic"), r.Header.Get("Urgency")
	if m.TTL, err = strconv.Atoi(r.Header.Get("TTL")); err != nil {
		return m, fmt.Errorf("the header TTL: %w", err)
	}
	if len(m.Topic) > 32 {
		return m, errors.New("a topic has at most 32 characters")
	}
	if m.Key, m.Subject, err = s.signer(r.Header.Get("Authorization")); err != nil {
		return m, err
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, 4097))
	if err != nil || len(body) > 4096 {
		return m, fmt.Errorf("%d bytes: %w", len(body), err)
	}
	m.Body, err = b.open(body)
	return m, err
}

// signer reads "vapid t=<JWT>, k=<key>" and checks the token with the key.
func (s *Service) signer(header string) (key, subject string, err error) {
	rest, ok := strings.CutPrefix(header, "vapid t=")
	token, key, ok2 := strings.Cut(rest, ", k=")
	parts := strings.Split(token, ".")
	point, err := base64.RawURLEncoding.DecodeString(key)
	if !ok || !ok2 || len(parts) != 3 || err != nil || len(point) != 65 {
		return "", "", fmt.Errorf("the header Authorization: %q", header)
	}
	public, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
	if err != nil {
		return "", "", err
	}
	sig, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || len(sig) != 64 {
		return "", "", errors.New("the signature of a VAPID token")
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if !ecdsa.Verify(public, sum[:], new(big.Int).SetBytes(sig[:32]), new(big.Int).SetBytes(sig[32:])) {
		return "", "", errors.New("a VAPID token that its key has not signed")
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Aud, Sub string
		Exp      int64
	}
	if err != nil || json.Unmarshal(text, &claims) != nil || claims.Aud != s.srv.URL {
		return "", "", fmt.Errorf("the claims %s", text)
	}
	if left := time.Until(time.Unix(claims.Exp, 0)); left < 0 || left > 24*time.Hour {
		return "", "", fmt.Errorf("a VAPID token of %v", left)
	}
	return key, claims.Sub, nil
}

// open decrypts one record.
func (b browser) open(body []byte) ([]byte, error) {
	if len(body) < 21+65+17 || body[20] != 65 {
		return nil, errors.New("a header of aes128gcm is cut off")
	}
	salt, size, point, sealed := body[:16], binary.BigEndian.Uint32(body[16:20]), body[21:86], body[86:]
	if int(size) < len(sealed) {
		return nil, errors.New("there is more than one record")
	}
	peer, err := ecdh.P256().NewPublicKey(point)
	if err != nil {
		return nil, err
	}
	shared, err := b.key.ECDH(peer)
	if err != nil {
		return nil, err
	}
	derive := func(secret, salt []byte, info string, n int) []byte {
		if err != nil {
			return make([]byte, n)
		}
		var out []byte
		out, err = hkdf.Key(sha256.New, secret, salt, info, n)
		return out
	}
	ikm := derive(shared, b.auth, "WebPush: info\x00"+string(b.key.PublicKey().Bytes())+string(point), 32)
	key := derive(ikm, salt, "Content-Encoding: aes128gcm\x00", 16)
	nonce := derive(ikm, salt, "Content-Encoding: nonce\x00", 12)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	text, err := gcm.Open(nil, nonce, sealed, nil)
	if err != nil {
		return nil, err
	}
	text = []byte(strings.TrimRight(string(text), "\x00"))
	if len(text) == 0 || text[len(text)-1] != 2 {
		return nil, errors.New("the last record does not end as one")
	}
	return text[:len(text)-1], nil
}
