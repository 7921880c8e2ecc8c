/* SPDX-License-Identifier: Apache-2.0 */
/* Limits, and what is said and heard of them. */
#include "up_share.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/plant.h"

bool up_share_may(const struct up_share *s, uint64_t used, uint64_t more)
{
	return !s->has_quota ||
	       (more <= s->limit_bytes && used <= s->limit_bytes - more);
}

void up_share_rule(struct up_share *s, bool has_quota, uint64_t used)
{
	if (has_quota && !s->has_quota)
		s->limit_bytes = used;
	s->has_quota = has_quota;
}

void up_share_join(struct up_share *s, uint64_t used)
{
	s->limit_bytes = used;
	s->version = 0;
	s->squeeze = false;
}

static uint64_t lowered(const struct up_share *s, uint64_t used)
{
	uint64_t slack = s->squeeze ? 0 : UP_SLACK_BYTES;

	/* Who waits for more does not give back what it will need. */
	if (s->wish_bytes)
		used = u64_max(used, s->wish_bytes);
	return u64_min(s->limit_bytes, used + slack);
}

json_t *up_share_say(struct up_share *s, const char *tenant, uint64_t used)
{
	uint64_t limit = s->has_quota ? lowered(s, used) : 0;

	if (s->has_quota && !PLANTED(ctl_keep_limit))
		s->limit_bytes = limit;
	return json_pack("{s:s, s:I, s:I, s:I, s:I}", "tenant", tenant, "used",
			 (json_int_t)used, "limit", (json_int_t)limit,
			 "version", (json_int_t)s->version, "wish",
			 (json_int_t)(s->has_quota && s->wish_bytes > limit
					      ? s->wish_bytes
					      : 0));
}

/* A member that is a number from 0; false: it is none. */
static bool number_of(const json_t *row, const char *name, uint64_t *out)
{
	const json_t *v = json_object_get(row, name);

	if (!json_is_integer(v) || json_integer_value(v) < 0)
		return false;
	*out = (uint64_t)json_integer_value(v);
	return true;
}

bool up_share_hear(struct up_share *s, const json_t *row, uint64_t used)
{
	uint64_t bytes, version;
	bool changed = false;

	if (!number_of(row, "bytes", &bytes) ||
	    !number_of(row, "version", &version))
		return false;
	s->squeeze = json_is_true(json_object_get(row, "squeeze"));
	if (version > s->version) {
		s->version = version;
		s->limit_bytes = u64_max(bytes, used);
		changed = true;
	}
	if (json_is_true(json_object_get(row, "refused"))) {
		s->refusals++;
		changed = true;
	}
	return changed;
}

/* ---- the controller ----------------------------------------------------- */

json_t *up_state_say(const struct up_state *u)
{
	return json_pack("{s:s, s:I, s:s}", "incarnation", u->incarnation,
			 "epoch", (json_int_t)u->epoch, "tenants", u->tenants);
}

int up_state_hear(struct up_state *u, const json_t *answer, uint64_t sent_ns)
{
	const char *tenants =
		json_string_value(json_object_get(answer, "tenants_name"));
	uint64_t term, epoch;

	if (!number_of(answer, "term", &term) ||
	    !number_of(answer, "epoch", &epoch))
		return error_set(-EPROTO,
				 "the controller's answer has no term");
	if (term < u->term)
		return error_set(-ESTALE,
				 "an answer of term %llu, and term %llu has "
				 "begun",
				 (unsigned long long)term,
				 (unsigned long long)u->term);
	u->term = term;
	u->epoch = epoch;
	u->heard_ns = u64_max(u->heard_ns, sent_ns);
	if (tenants && strlen(tenants) < sizeof(u->tenants))
		(void)snprintf(u->tenants, sizeof(u->tenants), "%s", tenants);
	return 0;
}

bool up_state_is_fresh(const struct up_state *u, uint64_t now_ns)
{
	return u->heard_ns && now_ns - u->heard_ns <= UP_SILENT_MS * 1000000ull;
}
