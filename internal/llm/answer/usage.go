package answer

import "strconv"

// counts are the counts of a provider so far, as it tells them. Repeated counts are
// running totals, and a count never goes down within an answer: some servers repeat
// it as zero, others begin with zero.
type counts struct {
	told          bool
	prompt        int64 // with what was cached where within is set
	output        int64
	read          int64
	write, write1 int64 // for five minutes, for an hour
	reasoning     int64
	tools         int64 // input of tools that the provider has run, beside the prompt
	within        bool  // read and write are a part of prompt
	cost          float64
	priced        bool
	tier          string
}

// tiers are the words that providers have for how a call was served.
var tiers = []string{"default", "standard", "priority", "flex", "batch"}

// served notes the tier that a call was served in.
func (c *counts) served(v value) {
	for _, tier := range tiers {
		if v.is(tier) {
			c.tier = tier
		}
	}
}

// raise takes a count that is a number and larger than what was told before.
func raise(to *int64, v value) {
	if n, ok := v.count(); ok {
		*to = max(*to, n)
	}
}

// tell notes a usage object in which at least one of the members is a count.
func (c *counts) tell(members ...value) bool {
	for _, v := range members {
		if _, ok := v.count(); ok {
			c.told = true
			return true
		}
	}
	return false
}

func (c *counts) usage() Usage {
	u := Usage{
		Input: c.prompt, Output: c.output, CacheRead: c.read, CacheWrite: c.write, CacheWrite1h: c.write1,
		Reasoning: min(c.reasoning, c.output),
	}
	if c.within {
		u.CacheRead = min(u.CacheRead, u.Input)
		u.Input -= u.CacheRead
		u.CacheWrite = min(u.CacheWrite, u.Input)
		u.Input -= u.CacheWrite
	}
	u.Input += c.tools
	if c.priced {
		u.Cost = strconv.FormatFloat(c.cost, 'f', -1, 64) // it may come as 5.7e-05
	}
	return u
}

// messagesUsage reads the usage of the Messages API. What was written to a cache
// without a life is for five minutes.
func (c *counts) messagesUsage(v value) {
	if !v.object() {
		return
	}
	m := v.pick("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "cache_creation",
		"output_tokens_details", "service_tier")
	c.served(m[6])
	if !c.tell(m[0], m[1], m[2], m[3]) {
		return
	}
	raise(&c.prompt, m[0])
	raise(&c.output, m[1])
	raise(&c.read, m[2])
	raise(&c.reasoning, m[5].get("thinking_tokens"))
	lives := m[4].pick("ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens")
	raise(&c.write, lives[0])
	raise(&c.write1, lives[1])
	if all, ok := m[3].count(); ok && all > c.write+c.write1 {
		c.write = all - c.write1
	}
}

// chatUsage reads the usage of chat completions, in the dialects of its servers.
func (c *counts) chatUsage(v value) {
	if !v.object() {
		return
	}
	m := v.pick("prompt_tokens", "completion_tokens", "total_tokens", "prompt_cache_hit_tokens", "num_cached_tokens",
		"prompt_tokens_details", "completion_tokens_details", "cost", "cached_tokens")
	if !c.tell(m[0], m[1]) {
		return
	}
	c.within = true
	raise(&c.prompt, m[0])
	in := m[5].pick("cached_tokens", "cache_write_tokens")
	for _, read := range []value{in[0], m[3], m[4], m[8]} {
		raise(&c.read, read)
	}
	raise(&c.write, in[1])
	c.price(m[7])
	prompt, _ := m[0].count()
	output, _ := m[1].count()
	total, _ := m[2].count()
	reasoning, _ := m[6].get("reasoning_tokens").count()
	// Some count the reasoning beside the completion, most within it; the total tells.
	if reasoning > 0 && total == prompt+output+reasoning {
		output += reasoning
	}
	c.output, c.reasoning = max(c.output, output), max(c.reasoning, reasoning)
}

func (c *counts) price(v value) {
	if cost, err := strconv.ParseFloat(string(v), 64); err == nil && cost >= 0 && cost < 1e6 {
		c.cost, c.priced = max(c.cost, cost), true
	}
}

// responsesUsage reads the usage of the Responses API.
func (c *counts) responsesUsage(v value) {
	if !v.object() {
		return
	}
	m := v.pick("input_tokens", "output_tokens", "input_tokens_details", "output_tokens_details", "cost")
	if !c.tell(m[0], m[1]) {
		return
	}
	c.within = true
	raise(&c.prompt, m[0])
	raise(&c.output, m[1])
	in := m[2].pick("cached_tokens", "cache_write_tokens")
	raise(&c.read, in[0])
	raise(&c.write, in[1])
	raise(&c.reasoning, m[3].get("reasoning_tokens"))
	c.price(m[4])
}

// geminiUsage reads the usage of Google's API, which counts thinking beside the
// answer, and the input of its own tools beside the prompt.
func (c *counts) geminiUsage(v value) {
	if !v.object() {
		return
	}
	m := v.pick("promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "cachedContentTokenCount", "toolUsePromptTokenCount")
	if !c.tell(m[0], m[1], m[2]) {
		return
	}
	c.within = true
	raise(&c.prompt, m[0])
	raise(&c.read, m[3])
	raise(&c.tools, m[4])
	output, _ := m[1].count()
	thoughts, _ := m[2].count()
	c.output, c.reasoning = max(c.output, output+thoughts), max(c.reasoning, thoughts)
}
