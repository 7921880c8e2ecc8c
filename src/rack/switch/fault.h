/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fault program: loses, doubles, delays, reorders and damages packets, and
 * cuts ports off from each other; by probability, by pattern or by schedule,
 * from a seed. Its options are rules, separated by ';', of key=value pairs,
 * separated by ','; the first rule that matches a packet decides.
 */
#ifndef AQ_TOR_FAULT_H
#define AQ_TOR_FAULT_H

#include "base/rng.h"
#include "tor_program.h"

extern const struct tor_program tor_fault;

struct fault_rule {
	/* Which packets: RoCE packets of these kinds (a bit per wire_kind, 0:
	 * all of them), or every frame. */
	bool every_frame;
	uint32_t kinds;
	char in[TOR_PORT_NAME_MAX];	/* received at; "": anywhere */
	char cut[2][TOR_PORT_NAME_MAX]; /* frames between these are lost */
	/* When, since the program started. */
	uint64_t from_ns;
	uint64_t until_ns;  /* 0: for ever */
	uint64_t period_ns; /* from and until repeat; 0: once */
	/* What, in parts per million. */
	uint32_t loss_ppm;
	uint32_t dup_ppm;
	uint32_t reorder_ppm;
	uint32_t corrupt_ppm;
	uint32_t forge_ppm; /* corrupt the payload, with a right ICRC */
	uint32_t delay_ppm;
	uint64_t delay_min_ns;
	uint64_t delay_max_ns;
	uint64_t reorder_ns; /* up to this much later */
	uint64_t nth;	     /* every nth packet is lost; 0: none */
	uint64_t nth_at;
	/* Pass (.), drop (x), duplicate (2), corrupt (c), delay (d). */
	char pattern[TOR_FAULT_PATTERN_MAX];
	uint32_t pattern_len;
	uint32_t pattern_at;
};

struct fault_options {
	struct fault_rule rules[TOR_FAULT_RULES];
	unsigned rule_count;
	bool has_seed;
	uint64_t seed;
};

/* fault_parse.c; the words of an error say what is wrong. */
int fault_parse(const char *text, struct fault_options *out) MUST_CHECK;

#endif
