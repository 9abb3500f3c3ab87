package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"yardmaster/internal/lazy"
)

// Bucket names a bucket of S3 and who may use it.
type Bucket struct {
	Endpoint string // host:port
	Plain    bool   // http instead of https
	Region   string
	Name     string
	Access   string // id of the access key
	Secret   string
}

// ErrAddress means that ParseBucket was given no address of a bucket.
var ErrAddress = errors.New("is not s3://ACCESS:SECRET@HOST/BUCKET?region=REGION, or s3+http:// for plain http")

var bucketName = lazy.New(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

// ParseBucket reads s3://ACCESS:SECRET@HOST:PORT/BUCKET?region=REGION; s3+http:// is
// for an endpoint without TLS. What has a meaning in an address is percent-encoded in
// the keys. Without region it is us-east-1. It fails with ErrAddress.
func ParseBucket(address string) (Bucket, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "s3" && u.Scheme != "s3+http" || u.Host == "" || u.User == nil || u.Fragment != "" {
		return Bucket{}, ErrAddress // without the cause, which quotes the secret
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return Bucket{}, ErrAddress
	}
	b := Bucket{
		Endpoint: u.Host, Plain: u.Scheme == "s3+http", Name: strings.Trim(u.Path, "/"), Region: q.Get("region"),
		Access: u.User.Username(),
	}
	b.Secret, _ = u.User.Password()
	if delete(q, "region"); len(q) > 0 || b.Access == "" || b.Secret == "" || !bucketName.MatchString(b.Name) {
		return Bucket{}, ErrAddress
	}
	if b.Region == "" {
		b.Region = "us-east-1"
	}
	return b, nil
}

// S3 keeps objects in a bucket.
type S3 struct {
	client    *minio.Client
	bucket    string
	transport *http.Transport
}

// NewS3 makes an S3 of a bucket. It makes no connection.
func NewS3(b Bucket) (*S3, error) {
	transport, err := minio.DefaultTransport(!b.Plain)
	if err != nil {
		return nil, fmt.Errorf("prepare connections to %s: %w", b.Endpoint, err)
	}
	client, err := minio.New(b.Endpoint, &minio.Options{
		Creds: credentials.NewStaticV4(b.Access, b.Secret, ""), Secure: !b.Plain, Region: b.Region,
		BucketLookup: minio.BucketLookupPath, Transport: transport, MaxRetries: 3,
	})
	if err != nil {
		return nil, fmt.Errorf("use the bucket %s at %s: %w", b.Name, b.Endpoint, err)
	}
	return &S3{client: client, bucket: b.Name, transport: transport}, nil
}

// Reach asks whether the bucket is there. It fails with ErrNotFound if the endpoint says
// that it is not, and with other errors, among them those of the network.
func (s *S3) Reach(ctx context.Context) error {
	there, err := s.client.BucketExists(ctx, s.bucket)
	if err == nil && !there {
		err = ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("look for the bucket %s: %w", s.bucket, err)
	}
	return nil
}

// Put implements Store.
func (s *S3) Put(ctx context.Context, key string, r io.Reader, size int64, mediaType string) error {
	if err := checkPut(key, size, mediaType); err != nil {
		return err
	}
	from := &ending{exactly{r: r, left: size}}
	if size == 0 { // the client would not read
		if _, err := from.exactly.Read(nil); !errors.Is(err, io.EOF) {
			return err
		}
	}
	if _, err := s.client.PutObject(ctx, s.bucket, key, from, size, minio.PutObjectOptions{ContentType: mediaType}); err != nil {
		return fmt.Errorf("store object %s: %w", key, err)
	}
	return nil
}

// ending reads as exactly does. It looks for the end together with the last bytes,
// since the client reads no further than the size.
type ending struct{ exactly }

func (e *ending) Read(p []byte) (int, error) {
	n, err := e.exactly.Read(p)
	if err == nil && e.left == 0 && n > 0 {
		if _, end := e.exactly.Read(nil); !errors.Is(end, io.EOF) {
			return 0, end
		}
	}
	return n, err
}

// Get implements Store.
func (s *S3) Get(ctx context.Context, key string) (io.ReadCloser, Info, error) {
	if err := checkKey(key); err != nil {
		return nil, Info{}, err
	}
	o, err := s.client.GetObject(ctx, s.bucket, key, minio.GetObjectOptions{})
	if err != nil {
		return nil, Info{}, failure("open", key, err)
	}
	about, err := o.Stat()
	if err != nil {
		return nil, Info{}, errors.Join(failure("open", key, err), o.Close())
	}
	return o, infoOf(about), nil
}

// Stat implements Store.
func (s *S3) Stat(ctx context.Context, key string) (Info, error) {
	if err := checkKey(key); err != nil {
		return Info{}, err
	}
	about, err := s.client.StatObject(ctx, s.bucket, key, minio.StatObjectOptions{})
	if err != nil {
		return Info{}, failure("look at", key, err)
	}
	return infoOf(about), nil
}

func infoOf(o minio.ObjectInfo) Info {
	return Info{Size: o.Size, Type: o.ContentType, At: o.LastModified}
}

func failure(what, key string, err error) error {
	if minio.ToErrorResponse(err).Code == minio.NoSuchKey {
		return ErrNotFound
	}
	return fmt.Errorf("%s object %s: %w", what, key, err)
}

// Delete implements Store.
func (s *S3) Delete(ctx context.Context, key string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	err := s.client.RemoveObject(ctx, s.bucket, key, minio.RemoveObjectOptions{})
	if err == nil || minio.ToErrorResponse(err).Code == minio.NoSuchKey {
		return nil
	}
	return failure("delete", key, err)
}

// PresignGet implements Store.
func (s *S3) PresignGet(ctx context.Context, key, name string, ttl time.Duration) (string, error) {
	if err := errors.Join(checkKey(key), checkTTL(ttl)); err != nil {
		return "", err
	}
	return s.answers(ctx, key, ttl, url.Values{"response-content-disposition": {attachment(name)}})
}

// PresignShow implements Store.
func (s *S3) PresignShow(ctx context.Context, key, name, mediaType string, ttl time.Duration) (string, error) {
	show := shown(mediaType)
	if show == "" {
		return s.PresignGet(ctx, key, name, ttl)
	}
	if err := errors.Join(checkKey(key), checkTTL(ttl)); err != nil {
		return "", err
	}
	return s.answers(ctx, key, ttl, url.Values{"response-content-disposition": {inline(name)}, "response-content-type": {show}})
}

// answers signs an address that answers an object with headers.
func (s *S3) answers(ctx context.Context, key string, ttl time.Duration, headers url.Values) (string, error) {
	u, err := s.client.PresignedGetObject(ctx, s.bucket, key, ttl, headers)
	if err != nil {
		return "", fmt.Errorf("sign an address of object %s: %w", key, err)
	}
	return u.String(), nil
}

// PresignPut implements Store.
func (s *S3) PresignPut(ctx context.Context, key string, size int64, mediaType string, ttl time.Duration) (string, error) {
	if err := errors.Join(checkPut(key, size, mediaType), checkTTL(ttl)); err != nil {
		return "", err
	}
	// A header that is signed must be sent as it was signed.
	bound := http.Header{"Content-Length": {strconv.FormatInt(size, 10)}}
	for name, value := range Upload(mediaType) {
		bound.Set(name, value)
	}
	u, err := s.client.PresignHeader(ctx, http.MethodPut, s.bucket, key, ttl, nil, bound)
	if err != nil {
		return "", fmt.Errorf("sign an address of object %s: %w", key, err)
	}
	return u.String(), nil
}

// Close implements Store.
func (s *S3) Close() error {
	s.transport.CloseIdleConnections()
	return nil
}
