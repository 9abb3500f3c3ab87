package broker

import (
	"encoding/base64"
	"mime"
	"net/http"
	"slices"
	"strings"
)

// unsearchable says why a secret in an answer could go unnoticed, or "". The reason
// quotes nothing of the answer, which may repeat the request.
func unsearchable(resp *http.Response) string {
	h := resp.Header
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return "changes the protocol"
	}
	if resp.StatusCode == http.StatusPartialContent || len(h["Content-Range"]) > 0 {
		return "is a part of one"
	}
	if resp.StatusCode == http.StatusIMUsed || len(h["Im"]) > 0 {
		return "is the difference to another one (RFC 3229)"
	}
	// An answer can have several codings one after the other, in one header or in
	// several.
	for _, name := range []string{"Content-Encoding", "Grpc-Encoding", "Connect-Content-Encoding"} {
		if coded(h[name]) {
			return "is compressed or coded though that was not asked for (" + name + ")"
		}
	}
	if coded(resp.TransferEncoding) {
		return "has a coding for its transfer that is not searched"
	}
	types := h["Content-Type"]
	if len(types) > 1 {
		return "has more than one Content-Type"
	}
	for _, text := range types {
		if strings.TrimSpace(text) == "" {
			continue
		}
		kind, parameters, err := mime.ParseMediaType(text)
		if err != nil && kind == "" {
			return "has a Content-Type that cannot be read"
		}
		if err != nil && strings.Contains(strings.ToLower(text), "charset") {
			return "has a charset that cannot be read"
		}
		if kind == "multipart/byteranges" {
			return "is parts of one"
		}
		if !ascii(parameters["charset"]) {
			return "is in a charset that is not searched: only UTF-8 and those that have ASCII in them are"
		}
	}
	return ""
}

// coded tells whether a list of codings contains one that changes bytes.
func coded(values []string) bool {
	for _, list := range values {
		for c := range strings.SplitSeq(list, ",") {
			if c = strings.ToLower(strings.TrimSpace(c)); c != "" && c != "identity" && c != "chunked" {
				return true
			}
		}
	}
	return false
}

// ascii tells whether a charset keeps the bytes of ASCII characters, of which
// credentials consist. UTF-16, UTF-7 and charsets with escape sequences do not.
func ascii(charset string) bool {
	charset = strings.ToLower(charset)
	for _, family := range []string{"iso-8859-", "windows-125"} {
		if rest, ok := strings.CutPrefix(charset, family); ok {
			return rest != "" && strings.Trim(rest, "0123456789") == ""
		}
	}
	return slices.Contains([]string{
		"", "utf-8", "utf8", "us-ascii", "ascii", "latin1", "koi8-r", "koi8-u",
		"gbk", "gb2312", "gb18030", "big5", "shift_jis", "euc-jp", "euc-kr",
	}, charset)
}

// decoded lists the secrets in a credential of the Basic scheme (RFC 7617), because
// hosts show the password or the user rather than the header.
func decoded(value string) []string {
	scheme, coded, _ := strings.Cut(value, " ")
	if !strings.EqualFold(scheme, "Basic") {
		return nil
	}
	text, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(strings.TrimSpace(coded), "="))
	if err != nil {
		return nil
	}
	_, password, _ := strings.Cut(string(text), ":")
	return []string{string(text), password}
}
