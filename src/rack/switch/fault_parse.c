/* SPDX-License-Identifier: Apache-2.0 */
/* The fault program's options, from text. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "fault.h"

#define REORDER_NS 50000ull
#define DELAY_NS   1000000ull

/* "1%", "0.01", "300ppm". */
static bool parse_share(const char *text, uint32_t *ppm)
{
	char *end;
	double v = strtod(text, &end);

	if (end == text)
		return false;
	if (strcmp(end, "%") == 0)
		v *= 10000;
	else if (strcmp(end, "ppm") != 0 && *end == '\0')
		v *= 1000000;
	else if (strcmp(end, "ppm") != 0)
		return false;
	if (!(v >= 0 && v <= 1000000))
		return false;
	*ppm = (uint32_t)(v + 0.5);
	return true;
}

static bool parse_time_n(const char *text, size_t len, uint64_t *ns)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
	char buf[32];
	char *end;
	double v;

	if (len == 0 || len >= sizeof(buf))
		return false;
	memcpy(buf, text, len);
	buf[len] = '\0';
	v = strtod(buf, &end);
	if (end == buf || !(v >= 0 && v < 1e9))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(units); i++) {
		if (strcmp(end, units[i].unit) == 0) {
			*ns = (uint64_t)(v * units[i].ns);
			return true;
		}
	}
	return false;
}

/* "A", or "A..B". */
static bool parse_span(const char *text, uint64_t *from, uint64_t *to)
{
	const char *dots = strstr(text, "..");

	if (!dots) {
		if (!parse_time_n(text, strlen(text), from))
			return false;
		*to = *from;
		return true;
	}
	return parse_time_n(text, (size_t)(dots - text), from) &&
	       parse_time_n(dots + 2, strlen(dots + 2), to) && *from <= *to;
}

static bool parse_delay(struct fault_rule *r, const char *v)
{
	if (!parse_span(v, &r->delay_min_ns, &r->delay_max_ns))
		return false;
	if (!r->delay_ppm)
		r->delay_ppm = 1000000;
	return true;
}

/* "A..B", or "A.." for ever. */
static bool parse_when(struct fault_rule *r, const char *v)
{
	size_t n = strlen(v);

	if (n > 2 && strcmp(v + n - 2, "..") == 0)
		return parse_time_n(v, n - 2, &r->from_ns);
	return strstr(v, "..") && parse_span(v, &r->from_ns, &r->until_ns) &&
	       r->until_ns > r->from_ns;
}

static bool parse_kinds(struct fault_rule *r, const char *v)
{
	static const struct {
		const char *name;
		uint32_t kinds;
	} names[] = {
		{"send", 1u << WIRE_SEND},
		{"write", 1u << WIRE_WRITE},
		{"read", 1u << WIRE_READ},
		{"atomic", 1u << WIRE_ATOMIC},
		{"response", 1u << WIRE_READ_RESP},
		{"ack", 1u << WIRE_ACK},
		{"atomic_ack", 1u << WIRE_ATOMIC_ACK},
		{"walk", 1u << WIRE_WALK},
		{"walk_answer", 1u << WIRE_WALK_ANSWER},
		{"walk_on", 1u << WIRE_WALK_ON},
		{"walk_back", 1u << WIRE_WALK_BACK},
		{"request", 1u << WIRE_SEND | 1u << WIRE_WRITE |
				    1u << WIRE_READ | 1u << WIRE_ATOMIC |
				    1u << WIRE_WALK},
		{"reply", 1u << WIRE_READ_RESP | 1u << WIRE_ACK |
				  1u << WIRE_ATOMIC_ACK |
				  1u << WIRE_WALK_ANSWER},
		{"roce", 0},
	};

	if (strcmp(v, "all") == 0) {
		r->every_frame = true;
		return true;
	}
	while (*v) {
		size_t n = strcspn(v, "+");
		bool known = false;

		for (size_t i = 0; i < ARRAY_LEN(names); i++) {
			if (strlen(names[i].name) == n &&
			    memcmp(names[i].name, v, n) == 0) {
				r->kinds |= names[i].kinds;
				known = true;
			}
		}
		if (!known)
			return false;
		v += n + (v[n] == '+');
	}
	return true;
}

static bool parse_cut(struct fault_rule *r, const char *v)
{
	const char *slash = strchr(v, '/');

	if (!slash || slash == v || !slash[1] ||
	    slash - v >= TOR_PORT_NAME_MAX ||
	    strlen(slash + 1) >= TOR_PORT_NAME_MAX)
		return false;
	memcpy(r->cut[0], v, (size_t)(slash - v));
	snprintf(r->cut[1], sizeof(r->cut[1]), "%s", slash + 1);
	r->every_frame = true;
	return true;
}

static bool parse_pattern(struct fault_rule *r, const char *v)
{
	size_t n = strlen(v);

	if (n == 0 || n >= TOR_FAULT_PATTERN_MAX || strspn(v, ".x2cd") != n)
		return false;
	memcpy(r->pattern, v, n);
	r->pattern_len = (uint32_t)n;
	return true;
}

static bool parse_u64(const char *v, uint64_t *out)
{
	char *end;

	if (*v < '0' || *v > '9')
		return false;
	errno = 0;
	*out = strtoull(v, &end, 0);
	return !errno && *end == '\0';
}

static bool take(struct fault_options *o, struct fault_rule *r, const char *key,
		 const char *v)
{
	const struct {
		const char *key;
		uint32_t *ppm;
	} shares[] = {
		{"loss", &r->loss_ppm},	      {"dup", &r->dup_ppm},
		{"reorder", &r->reorder_ppm}, {"corrupt", &r->corrupt_ppm},
		{"forge", &r->forge_ppm},     {"delay_share", &r->delay_ppm},
	};

	for (size_t i = 0; i < ARRAY_LEN(shares); i++)
		if (strcmp(key, shares[i].key) == 0)
			return parse_share(v, shares[i].ppm);
	if (strcmp(key, "delay") == 0)
		return parse_delay(r, v);
	if (strcmp(key, "reorder_by") == 0)
		return parse_time_n(v, strlen(v), &r->reorder_ns);
	if (strcmp(key, "nth") == 0)
		return parse_u64(v, &r->nth) && r->nth > 0;
	if (strcmp(key, "pattern") == 0)
		return parse_pattern(r, v);
	if (strcmp(key, "when") == 0)
		return parse_when(r, v);
	if (strcmp(key, "every") == 0)
		return parse_time_n(v, strlen(v), &r->period_ns);
	if (strcmp(key, "only") == 0)
		return parse_kinds(r, v);
	if (strcmp(key, "cut") == 0)
		return parse_cut(r, v);
	if (strcmp(key, "in") == 0 && strlen(v) < TOR_PORT_NAME_MAX) {
		snprintf(r->in, sizeof(r->in), "%s", v);
		return true;
	}
	if (strcmp(key, "seed") == 0) {
		o->has_seed = true;
		return parse_u64(v, &o->seed);
	}
	return false;
}

static int parse_pair(struct fault_options *o, struct fault_rule *r, char *pair)
{
	static const char keys[] =
		"loss, dup, reorder, reorder_by, corrupt, forge, delay, "
		"delay_share, nth, pattern, when, every, only, in, cut, seed";
	char *eq = strchr(pair, '=');

	if (eq) {
		*eq = '\0';
		if (take(o, r, pair, eq + 1))
			return 0;
	}
	return error_set(-EINVAL,
			 "fault does not understand '%.40s%s%.40s'; it knows "
			 "%s; see aquifer-switch(1)",
			 pair, eq ? "=" : "", eq ? eq + 1 : "", keys);
}

static int parse_rule(struct fault_options *o, char *text)
{
	struct fault_rule *r;
	char *save = NULL;

	if (!text[0])
		return 0;
	if (o->rule_count == TOR_FAULT_RULES)
		return error_set(-EINVAL, "fault takes up to %d rules",
				 TOR_FAULT_RULES);
	r = &o->rules[o->rule_count++];
	*r = (struct fault_rule){.reorder_ns = REORDER_NS,
				 .delay_min_ns = DELAY_NS,
				 .delay_max_ns = DELAY_NS};
	for (char *pair = strtok_r(text, ",", &save); pair;
	     pair = strtok_r(NULL, ",", &save)) {
		int err = parse_pair(o, r, pair);

		if (err)
			return err;
	}
	if (r->period_ns && (!r->until_ns || r->until_ns > r->period_ns))
		return error_set(-EINVAL, "fault: 'every' needs 'when=A..B' "
					  "with B not after its end");
	return 0;
}

int fault_parse(const char *text, struct fault_options *out)
{
	char *copy = strdup(text);
	char *save = NULL;
	int err = 0;

	if (!copy)
		return -ENOMEM;
	*out = (struct fault_options){0};
	for (char *rule = strtok_r(copy, "; \n\t", &save); rule && !err;
	     rule = strtok_r(NULL, "; \n\t", &save))
		err = parse_rule(out, rule);
	free(copy);
	return err;
}
