/* SPDX-License-Identifier: Apache-2.0 */
/* The page for people, the list of claims, and both as JSON. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/json_out.h"
#include "claims_priv.h"

static const char head[] =
	"<!-- Written by `aquifer sim claims`: change the tables in "
	"lab/claims, not this page. -->\n"
	"# What was published, and what of it holds here\n\n"
	"Every claim with a number of the publications that this project "
	"follows, in our words, with its value here and the\n"
	"command that shows it. No value was written by hand: each is what the "
	"command printed, at the commit in the last table.\n\n"
	"- **measured**: real processes on the machine that ran the command, "
	"whose soft NICs cost what processors cost;\n"
	"- **simulated on shipped code**: NICs, stores, engines and switches "
	"of "
	"this tree, on the costs of hardware (`aquifer sim nic-model`);\n"
	"- **model**: at least one side is a model of somebody else's code;\n"
	"- **input**: the model was made from this number, so that it shows "
	"nothing but that the model was made with care.\n\n"
	"A claim *holds* where the value is within the bounds that its figure "
	"prints beside it, for most from half of what was published to\n"
	"twice that. *Short* is everything else, also what is far better. "
	"*No answer*: the command ran, and could not say it.\n\n"
	"<!-- run: no, takes an hour -->\n"
	"```sh\n"
	"aquifer sim claims --out docs/claims.md    # an hour; Ctrl-C stops "
	"it, the same command goes on\n"
	"aquifer sim claims --quick                 # only what takes seconds\n"
	"aquifer sim claims --only odrp --list      # what there is\n"
	"```\n\n";

/* ---- values ---------------------------------------------------------------
 */

static void print_value(const struct claims_answer *a, FILE *f)
{
	if (a->has_value)
		fprintf(f, fabs(a->value) < 1000 ? "%.3g%s%s" : "%.0f%s%s",
			a->value, *a->unit ? " " : "", a->unit);
}

static void print_row(const struct claim *c, const struct claims_answer *a,
		      FILE *f)
{
	fprintf(f, "| %s | %s | ", c->where, c->text);
	print_value(a, f);
	fprintf(f, " | %s%s%s%s | ", a->verdict == CLAIMS_SHORT ? "**" : "",
		claims_verdict_name(a->verdict),
		a->verdict == CLAIMS_SHORT ? "**" : "",
		a->verdict == CLAIMS_FAILED ? ":" : "");
	if (a->verdict == CLAIMS_FAILED)
		fprintf(f, "%s ", a->why);
	if (c->command)
		fprintf(f, "%s | `%s` |\n", claims_kind_name(c->kind),
			c->command);
	else
		fprintf(f, "| %s |\n", c->remark);
}

/* ---- the page -------------------------------------------------------------
 */

static void count(const struct claims_run *r, const struct claim_doc *d,
		  unsigned of[CLAIMS_VERDICTS])
{
	memset(of, 0, CLAIMS_VERDICTS * sizeof(*of));
	for (size_t i = 0; i < d->count; i++) {
		const struct claim *c = &d->claims[i];

		of[claims_answer(c, claims_command_find(r, c->command))
			   .verdict]++;
	}
}

static void print_sums(const struct claims_run *r, FILE *f)
{
	unsigned of[CLAIMS_VERDICTS], sum[CLAIMS_VERDICTS] = {0}, all = 0;

	fputs("| | claims |", f);
	for (int v = 0; v < CLAIMS_VERDICTS; v++)
		fprintf(f, " %s |",
			claims_verdict_name((enum claims_verdict)v));
	fputs("\n|---|---|", f);
	for (int v = 0; v < CLAIMS_VERDICTS; v++)
		fputs("---|", f);
	CLAIM_DOC_EACH(d)
	{
		count(r, d, of);
		fprintf(f, "\n| [%s](#%s) | %zu |", d->name, d->name, d->count);
		all += (unsigned)d->count;
		for (int v = 0; v < CLAIMS_VERDICTS; v++) {
			fprintf(f, " %u |", of[v]);
			sum[v] += of[v];
		}
	}
	fprintf(f, "\n| all | %u |", all);
	for (int v = 0; v < CLAIMS_VERDICTS; v++)
		fprintf(f, " %u |", sum[v]);
	fputs("\n", f);
}

static void print_doc(const struct claims_run *r, const struct claim_doc *d,
		      FILE *f)
{
	fprintf(f,
		"\n## %s\n\n%s\n\n| where | claim | here | verdict | kind | "
		"`aquifer` ... |\n|---|---|---|---|---|---|\n",
		d->name, d->title);
	for (size_t i = 0; i < d->count; i++) {
		const struct claim *c = &d->claims[i];
		struct claims_answer a =
			claims_answer(c, claims_command_find(r, c->command));

		print_row(c, &a, f);
	}
}

static void print_commands(const struct claims_run *r, FILE *f)
{
	fputs("\n## Commands\n\n| `aquifer` ... | took | commit "
	      "|\n|---|---|---|"
	      "\n",
	      f);
	for (size_t i = 0; i < r->count; i++) {
		const struct claims_command *c = &r->command[i];
		const char *commit =
			json_string_value(json_object_get(c->result, "commit"));

		fprintf(f, "| `%s` | ", c->is->words);
		if (c->result)
			fprintf(f, "%.0f s | %s |\n", c->seconds,
				commit ? commit : "");
		else if (c->exit_code)
			fprintf(f, "failed, exit code %d | |\n", c->exit_code);
		else
			fprintf(f, "not run yet, about %u s | |\n",
				c->is->seconds);
	}
}

int claims_page_write(const struct claims_run *r, const char *path)
{
	char fresh[PATH_MAX];
	FILE *f;
	int bad;

	if (snprintf(fresh, sizeof(fresh), "%s.new", path) >=
	    (int)sizeof(fresh))
		return error_set(-ENAMETOOLONG, "--out: path too long");
	f = fopen(fresh, "we");
	if (!f)
		return error_set(-errno, "--out %s: %s", fresh,
				 strerror(errno));
	fputs(head, f);
	print_sums(r, f);
	CLAIM_DOC_EACH(d)
	print_doc(r, d, f);
	print_commands(r, f);
	bad = ferror(f);
	if ((fclose(f) != 0) | bad || rename(fresh, path) < 0) {
		(void)unlink(fresh);
		return error_set(-EIO, "--out %s: cannot be written", path);
	}
	return 0;
}

/* ---- lists ----------------------------------------------------------------
 */

void claims_list(const struct claims_run *r, FILE *out)
{
	CLAIM_DOC_EACH(d)
	for (size_t i = 0; i < d->count && claims_wants(r, d); i++) {
		const struct claim *c = &d->claims[i];

		fprintf(out, "%-9s %s: %s\n%-9s   %s%s\n", d->name, c->where,
			c->text, "", c->command ? "aquifer " : "not tried: ",
			c->command ? c->command : c->remark);
	}
}

static void print_json(struct json_out *j, const struct claim_doc *d,
		       const struct claim *c, const struct claims_answer *a)
{
	json_out_object(j, NULL);
	json_out_string(j, "document", d->name);
	json_out_string(j, "where", c->where);
	json_out_string(j, "claim", c->text);
	json_out_string(j, "kind", claims_kind_name(c->kind));
	json_out_string(j, "verdict", claims_verdict_name(a->verdict));
	if (a->has_value)
		json_out_double(j, "value", a->value);
	else
		json_out_null(j, "value");
	json_out_string(j, "unit", a->unit);
	if (c->command)
		json_out_string(j, "command", c->command);
	else
		json_out_null(j, "command");
	json_out_string(j, "why", c->remark ? c->remark : a->why);
	json_out_close(j);
}

int claims_json(const struct claims_run *r, FILE *out)
{
	struct json_out j;

	json_out_init(&j, out);
	json_out_object(&j, NULL);
	json_out_string(&j, "sim", "claims");
	json_out_array(&j, "claims");
	CLAIM_DOC_EACH(d)
	for (size_t i = 0; i < d->count && claims_wants(r, d); i++) {
		const struct claim *c = &d->claims[i];
		struct claims_answer a =
			claims_answer(c, claims_command_find(r, c->command));

		print_json(&j, d, c, &a);
	}
	json_out_close(&j);
	json_out_close(&j);
	return json_out_end(&j);
}
