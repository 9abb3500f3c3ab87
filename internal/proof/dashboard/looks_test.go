//go:build !race

package dashboard_test

import (
	"bytes"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"yardmaster/internal/proof/browser"
)

var updateLooks = flag.Bool("looks", false, "write the pictures of testdata/looks")

const (
	looks     = "testdata/looks"
	cell      = 12   // pixels of the screen that are one of a kept picture, each way
	offBy     = 24   // of 255: a pixel that differs by more has changed
	mayDiffer = 0.01 // of the pixels: fonts of code and controls differ from system to system
)

// The parts of the sheet look as they are kept: a change of a colour, a size or a place is seen
// in review, as pictures of a twelfth of their size. -looks writes them.
func TestLooks(t *testing.T) {
	t.Parallel()
	b := browser.Open(t, partsServer(t), 1440, 900)
	b.Go("/")
	b.Until("the font", `document.fonts.load("13px Inter").then(() => document.fonts.check("13px Inter"))`)
	for _, width := range []int64{1440, 1024, 390} {
		for _, theme := range []string{"light", "dark"} {
			b.Theme(theme)
			b.Resize(width, 900)
			b.Resize(width, browser.Eval[int64](b, `document.documentElement.scrollHeight`))
			browser.Eval[any](b, `new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(null))))`)
			name := fmt.Sprintf("components-%d-%s.png", width, theme)
			looksAs(b, filepath.Join(looks, name))
		}
	}
}

// looksAs holds what a tab shows against a kept picture.
func looksAs(b *browser.Tab, kept string) {
	b.T.Helper()
	at := filepath.Join(b.T.(*testing.T).TempDir(), "now.png")
	b.Picture(at)
	now, err := picture(at)
	if err != nil {
		b.T.Fatal(err)
	}
	small := reduced(now)
	if *updateLooks {
		var out bytes.Buffer
		if err := png.Encode(&out, small); err != nil {
			b.T.Fatal(err)
		}
		if err := os.WriteFile(kept, out.Bytes(), 0o644); err != nil {
			b.T.Fatal(err)
		}
		return
	}
	want, err := picture(kept)
	if err != nil {
		b.T.Fatal(err)
	}
	if share := differ(small, want); share > mayDiffer {
		b.T.Errorf("%s: %.1f %% of it looks otherwise than it did. If it is meant to, go test ./internal/proof/dashboard -run TestLooks -looks",
			kept, 100*share)
	}
}

func picture(at string) (image.Image, error) {
	text, err := os.ReadFile(at)
	if err != nil {
		return nil, err
	}
	return png.Decode(bytes.NewReader(text))
}

// reduced is a picture of which each pixel is the mean of a cell.
func reduced(of image.Image) *image.RGBA {
	size := of.Bounds().Size()
	out := image.NewRGBA(image.Rect(0, 0, size.X/cell, size.Y/cell))
	for y := range size.Y / cell {
		for x := range size.X / cell {
			var sum [3]uint32
			for i := range cell * cell {
				r, g, b, _ := of.At(x*cell+i%cell, y*cell+i/cell).RGBA()
				sum[0], sum[1], sum[2] = sum[0]+r>>8, sum[1]+g>>8, sum[2]+b>>8
			}
			n := uint32(cell * cell)
			out.SetRGBA(x, y, color.RGBA{uint8(sum[0] / n), uint8(sum[1] / n), uint8(sum[2] / n), 255})
		}
	}
	return out
}

// differ is the share of the pixels of two pictures that are not alike; all of them if the
// pictures have other sizes, but for the last few lines of a page.
func differ(a, b image.Image) float64 {
	one, other := a.Bounds().Size(), b.Bounds().Size()
	if one.X != other.X || max(one.Y, other.Y)-min(one.Y, other.Y) > 3 {
		return 1
	}
	wrong, high := 0, min(one.Y, other.Y)
	for y := range high {
		for x := range one.X {
			if !alike(a.At(x, y), b.At(x, y)) {
				wrong++
			}
		}
	}
	return float64(wrong) / float64(one.X*high)
}

func alike(a, b color.Color) bool {
	r, g, v, _ := a.RGBA()
	s, h, w, _ := b.RGBA()
	for _, d := range []int{int(r>>8) - int(s>>8), int(g>>8) - int(h>>8), int(v>>8) - int(w>>8)} {
		if d > offBy || d < -offBy {
			return false
		}
	}
	return true
}

// A changed colour is seen, and the same picture is no change.
func TestLooksAreCompared(t *testing.T) {
	t.Parallel()
	page := func(of color.RGBA) *image.RGBA {
		out := image.NewRGBA(image.Rect(0, 0, 240, 240))
		for i := range 240 * 240 {
			at := color.RGBA{250, 250, 250, 255}
			if i%240 < 60 && i/240 < 60 { // a sixteenth of it is a button
				at = of
			}
			out.SetRGBA(i%240, i/240, at)
		}
		return out
	}
	blue, green := reduced(page(color.RGBA{40, 80, 210, 255})), reduced(page(color.RGBA{20, 120, 70, 255}))
	if got := differ(blue, blue); got != 0 {
		t.Errorf("a picture differs from itself by %v", got)
	}
	if got := differ(blue, green); got != 1./16 {
		t.Errorf("the button has another colour: %v", got)
	}
	if got := differ(blue, reduced(image.NewRGBA(image.Rect(0, 0, 120, 240)))); got != 1 {
		t.Errorf("another width: %v", got)
	}
}
