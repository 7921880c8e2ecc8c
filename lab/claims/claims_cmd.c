/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer sim claims`: runs what shows the claims, one command after the
 * other, and writes the page after each. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/complaint.h"
#include "base/error.h"
#include "base/opt.h"
#include "claims_priv.h"

enum claims_exit {
	CLAIMS_RAN = 0,
	CLAIMS_BROKEN = 1, /* a command failed, or it was stopped */
	CLAIMS_USAGE = 2,
};

struct claims_options {
	const char *only, *state, *out;
	bool list, quick, full, sims, again, json;
};

static const struct opt options[] = {
	OPT_TEXT(struct claims_options, only, "only", "DOC",
		 "run only commands of this document"),
	OPT_FLAG(struct claims_options, quick, "quick",
		 "run only commands that take seconds"),
	OPT_FLAG(struct claims_options, full, "full",
		 "also run those that take hours"),
	OPT_FLAG(struct claims_options, sims, "sims",
		 "run no benchmarks, which want a machine that does nothing "
		 "else"),
	OPT_FLAG(struct claims_options, again, "again",
		 "also run what the state has"),
	OPT_TEXT(struct claims_options, state, "state", "DIR",
		 "what commands printed, to go on later (claims.state)"),
	OPT_TEXT(struct claims_options, out, "out", "FILE",
		 "the page, written after each command (claims.md)"),
	OPT_FLAG(struct claims_options, list, "list",
		 "print the claims and their commands, and run nothing"),
	OPT_FLAG(struct claims_options, json, "json",
		 "print one JSON object with all claims at the end"),
	OPT_END,
};

static void usage(FILE *out)
{
	fputs("usage: aquifer sim claims [OPTION...]\n", out);
	opt_help_text("Runs the commands that show what was published, and "
		      "writes each claim with its value here: holds, short, or "
		      "not tried. All takes an hour on two processors. It can "
		      "be stopped at any time, and goes on when it is started "
		      "again with the same --state.",
		      out);
	fputs("documents:\n", out);
	CLAIM_DOC_EACH(d)
	fprintf(out, "  %-9s %s\n", d->name, d->title);
	fputs("options:\n", out);
	opt_help(options, out);
	fputs("Exit code 1 when a command failed, or it was stopped; a claim "
	      "that does not hold\nis no failure.\n",
	      out);
}

/* ---- which ----------------------------------------------------------------
 */

bool claims_wants(const struct claims_run *r, const struct claim_doc *doc)
{
	return !r->only || !strcmp(r->only, doc->name);
}

const struct claims_command *claims_command_find(const struct claims_run *r,
						 const char *words)
{
	for (size_t i = 0; words && i < r->count; i++)
		if (!strcmp(r->command[i].is->words, words))
			return &r->command[i];
	return NULL;
}

static bool is_wanted(const struct claims_run *r,
		      const struct claims_options *o,
		      const struct claims_command *c)
{
	if ((o->quick && c->is->seconds > CLAIMS_QUICK_S) ||
	    (!o->full && c->is->seconds > CLAIMS_LONG_S) ||
	    (o->sims && strncmp(c->is->words, "sim ", 4) != 0) ||
	    (!o->again && claims_is_complete(c)))
		return false;
	CLAIM_DOC_EACH(d)
	for (size_t i = 0; i < d->count && claims_wants(r, d); i++)
		if (d->claims[i].command &&
		    !strcmp(d->claims[i].command, c->is->words))
			return true;
	return false;
}

static int check(const struct claims_options *o)
{
	bool is_known = !o->only;

	CLAIM_DOC_EACH(d)
	is_known = is_known || !strcmp(d->name, o->only);
	if (!is_known)
		return error_set(-EINVAL, "--only: there is no document %s",
				 o->only);
	if (o->quick && o->full)
		return error_set(-EINVAL, "--quick and --full are opposites");
	return 0;
}

/* ---- all of it ------------------------------------------------------------
 */

static void tell(const struct claims_command *c, size_t at, size_t count)
{
	if (c->exit_code)
		fprintf(stderr, "%zu of %zu: aquifer %s: failed\n", at, count,
			c->is->words);
	else
		fprintf(stderr, "%zu of %zu: aquifer %s: %.0f s\n", at, count,
			c->is->words, c->seconds);
}

static int run_wanted(struct claims_run *r, const struct claims_options *o,
		      bool *failed)
{
	bool wanted[CLAIMS_COMMANDS_MAX];
	size_t count = 0, at = 0;
	int rc = 0;

	for (size_t i = 0; i < r->count; i++)
		count += wanted[i] = is_wanted(r, o, &r->command[i]);
	for (size_t i = 0; i < r->count && !rc; i++) {
		struct claims_command *c = &r->command[i];

		if (!wanted[i])
			continue;
		fprintf(stderr, "%zu of %zu: aquifer %s, about %u s\n", ++at,
			count, c->is->words, c->is->seconds);
		rc = claims_state_run(r, c);
		if (rc)
			break;
		tell(c, at, count);
		*failed = *failed || c->exit_code;
		rc = claims_page_write(r, o->out);
	}
	return rc;
}

static int go(struct claims_run *r, const struct claims_options *o)
{
	bool failed = false;
	int rc = claims_state_open(r);

	if (!rc)
		rc = claims_page_write(r, o->out);
	if (!rc)
		rc = run_wanted(r, o, &failed);
	if (rc == -EINTR)
		error_set(rc, "stopped; the same command goes on from here");
	if (!rc && o->json)
		rc = claims_json(r, stdout);
	if (rc)
		complain(0, "sim claims: %s", error_last());
	claims_state_close(r);
	return rc || failed ? CLAIMS_BROKEN : CLAIMS_RAN;
}

int sim_claims_cmd(int argc, char **argv)
{
	struct claims_options o = {.state = "claims.state", .out = "claims.md"};
	struct claims_run r = {0};
	enum opt_result parsed;
	int words;

	parsed = opt_parse(options, "sim claims", argc, argv, OPT_WORDS_NONE,
			   &o, &words);
	if (parsed == OPT_HELP) {
		usage(stdout);
		return CLAIMS_RAN;
	}
	if (parsed == OPT_WRONG || check(&o)) {
		if (!complaint_is_json())
			usage(stderr);
		complain(0, "%s", error_last());
		return CLAIMS_USAGE;
	}
	r.only = o.only;
	r.state = o.state;
	for (const struct claim_command *c = claim_commands; c->words; c++) {
		ASSERT(r.count < CLAIMS_COMMANDS_MAX);
		r.command[r.count++].is = c;
	}
	if (!o.list)
		return go(&r, &o);
	if (!o.json)
		claims_list(&r, stdout);
	else if (claims_json(&r, stdout))
		return CLAIMS_BROKEN;
	return CLAIMS_RAN;
}
