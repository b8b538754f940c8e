package journal

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/callsheet/callsheet/value"
)

// A Header says what a run is a run of. It never changes, and its hash is the
// first link of the run's chain.
type Header struct {
	Run  string // the run's id
	Kind string // "plan", "agent"
	Name string // for people; may be empty

	// The digests of what was given to the run. A run goes on only under equal
	// ones. The zero Digest stands for "none".
	Plan      value.Digest
	Catalogue value.Digest
	Policy    value.Digest
}

// unsigned is the header line without its signature: what the key signs.
func (h Header) unsigned() []byte {
	b := append([]byte(nil), `{"callsheet":"journal","v":`...)
	b = strconv.AppendInt(b, LineVersion, 10)
	for _, m := range [...][2]string{
		{"run", h.Run}, {"kind", h.Kind}, {"name", h.Name},
		{"plan", h.Plan.String()}, {"catalogue", h.Catalogue.String()}, {"policy", h.Policy.String()},
	} {
		b = append(b, ',', '"')
		b = append(b, m[0]...)
		b = append(b, '"', ':')
		b = value.AppendQuote(b, m[1])
	}
	return b
}

const headerDomain = "callsheet journal header\n"

// line is the signed header line.
func (h Header) line(key *Key) []byte {
	b := h.unsigned()
	sig := ed25519.Sign(key.private, append([]byte(headerDomain), b...))
	b = append(b, `,"key":"`...)
	b = base64.StdEncoding.AppendEncode(b, key.Public())
	b = append(b, `","sig":"`...)
	b = base64.StdEncoding.AppendEncode(b, sig)
	return append(b, `"}`...)
}

// parseHeader reads a header line and checks its signature. The line must be
// byte for byte what a writer writes, so that no two lines mean the same.
func parseHeader(line []byte) (h Header, signer ed25519.PublicKey, err error) {
	v, err := value.Parse(line)
	if err != nil {
		return h, nil, fmt.Errorf("not JSON: %w", err)
	}
	if textMember(v, "callsheet") != "journal" {
		return h, nil, errors.New("not the header of a run")
	}
	if major, ok := intMember(v, "v"); !ok || major != LineVersion {
		return h, nil, fmt.Errorf("not a header of version %d", LineVersion)
	}
	h.Run, h.Kind, h.Name = textMember(v, "run"), textMember(v, "kind"), textMember(v, "name")
	for _, d := range [...]struct {
		name string
		into *value.Digest
	}{{"plan", &h.Plan}, {"catalogue", &h.Catalogue}, {"policy", &h.Policy}} {
		hash, ok := parseHash(textMember(v, d.name))
		if !ok {
			return h, nil, fmt.Errorf("%s is not a digest in lower-case hex", d.name)
		}
		*d.into = value.Digest(hash)
	}
	signer, sig, err := parseSignature(v)
	if err != nil {
		return h, nil, err
	}
	b := h.unsigned()
	if !ed25519.Verify(signer, append([]byte(headerDomain), b...), sig) {
		return h, nil, errors.New("the signature does not fit")
	}
	want := string(b) + `,"key":"` + textMember(v, "key") + `","sig":"` + textMember(v, "sig") + `"}`
	if want != string(line) {
		return h, nil, errors.New("not written as a header is")
	}
	return h, signer, nil
}

// parseSignature reads the members key and sig.
func parseSignature(v value.Value) (signer ed25519.PublicKey, sig []byte, err error) {
	signer, err = base64.StdEncoding.Strict().DecodeString(textMember(v, "key"))
	if err != nil || len(signer) != ed25519.PublicKeySize {
		return nil, nil, errors.New("key is not an Ed25519 public key in base64")
	}
	sig, err = base64.StdEncoding.Strict().DecodeString(textMember(v, "sig"))
	if err != nil || len(sig) != ed25519.SignatureSize {
		return nil, nil, errors.New("sig is not an Ed25519 signature in base64")
	}
	return signer, sig, nil
}

// A Head is how far a run's chain had come: a number of records and the hash of
// the last line. Whoever keeps one can tell later whether the tail was cut.
type Head struct {
	Records int
	Hash    Hash
}

// String writes the head as people copy it: "22:" and the hash in hex.
func (h Head) String() string { return strconv.Itoa(h.Records) + ":" + h.Hash.String() }

// ParseHead reads what [Head.String] wrote.
func ParseHead(s string) (Head, error) {
	count, hash, ok := strings.Cut(s, ":")
	n, err := strconv.Atoi(count)
	h, isHash := parseHash(hash)
	if !ok || err != nil || n < 0 || strconv.Itoa(n) != count || !isHash {
		return Head{}, fmt.Errorf("head %q: want the number of records, a colon and 64 lower-case hex digits", s)
	}
	return Head{n, h}, nil
}

// CheckpointEvery is the number of records of which the last is a signed
// checkpoint (spec/plan.md §8).
const CheckpointEvery = 100

const checkpointDomain = "callsheet journal checkpoint\n"

// sigMark ends what a checkpoint signs: its own line up to the signature.
const sigMark = `","sig":"`

// checkpointBody writes the body of a checkpoint after n records up to its
// signature.
func checkpointBody(dst []byte, n int, final bool, key *Key) []byte {
	dst = append(dst, `{"records":`...)
	dst = strconv.AppendInt(dst, int64(n), 10)
	dst = append(dst, `,"final":`...)
	dst = strconv.AppendBool(dst, final)
	dst = append(dst, `,"key":"`...)
	dst = base64.StdEncoding.AppendEncode(dst, key.Public())
	return append(dst, sigMark...)
}

// signLine completes the line of a checkpoint whose body ends at sigMark. The
// signature covers the run's id and every byte of the line before it, the hash
// of the line's predecessor among them.
func signLine(line []byte, run string, key *Key) []byte {
	line = line[:len(line)-1] // the brace that closes the line comes last
	sig := ed25519.Sign(key.private, checkpointMessage(run, line))
	line = base64.StdEncoding.AppendEncode(line, sig)
	return append(line, `"}}`...)
}

func checkpointMessage(run string, signed []byte) []byte {
	m := make([]byte, 0, len(checkpointDomain)+len(run)+1+len(signed))
	m = append(m, checkpointDomain...)
	m = append(m, run...)
	m = append(m, '\n')
	return append(m, signed...)
}

// checkCheckpoint checks the signature of a checkpoint's line.
func checkCheckpoint(run string, line []byte, e Entry) (signer ed25519.PublicKey, final bool, err error) {
	records, ok := intMember(e.slim, "records")
	if !ok || records != int64(e.Index) {
		return nil, false, errors.New("a checkpoint that counts other records than come before it")
	}
	m, _ := e.slim.Get("final")
	if final, ok = m.Bool(); !ok {
		return nil, false, errors.New("a checkpoint that does not say whether it is final")
	}
	signer, sig, err := parseSignature(e.slim)
	if err != nil {
		return nil, false, err
	}
	text := base64.StdEncoding.EncodeToString(sig) + `"}}`
	signed, ok := strings.CutSuffix(string(line), text)
	if !ok || !strings.HasSuffix(signed, sigMark) {
		return nil, false, errors.New("not written as a checkpoint is")
	}
	if !ed25519.Verify(signer, checkpointMessage(run, []byte(signed)), sig) {
		return nil, false, errors.New("the signature does not fit")
	}
	return signer, final, nil
}

// first is the hash of a header line: the first link of its chain.
func first(header []byte) Hash { return sha256.Sum256(header) }
