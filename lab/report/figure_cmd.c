/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer sim SYSTEM --figure`: one command line for all figures. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "figure.h"

enum {
	JOBS_MAX = 64,
};

struct arguments {
	const struct figure_system *system;
	const char *figure;
	struct figure_options o;
};

static void usage(const struct figure_system *s, FILE *out)
{
	fprintf(out,
		"usage: aquifer sim %s --figure NAME|all [--quick] [--jobs N] "
		"[--out DIR] [--detail] [--json]",
		s->name);
	for (unsigned i = 0; i < s->option_count; i++)
		fprintf(out, " [%s%s]", s->options[i].name,
			s->options[i].names  ? " NAME"
			: s->options[i].most ? " N"
					     : "");
	fprintf(out,
		"\n%s\n"
		"  --figure NAME   which, or all:\n",
		s->summary);
	for (const struct figure *f = s->figures; f->name; f++)
		fprintf(out, "      %-10s %s\n", f->name, f->title);
	fputs("  --quick         few and small points, which prove nothing\n"
	      "  --jobs N        points at a time\n"
	      "  --out DIR       write a picture there, as SVG, the published "
	      "points beside ours\n"
	      "  --detail        print all that is known of each point\n"
	      "  --json          print one JSON object per figure\n",
	      out);
	for (unsigned i = 0; i < s->option_count; i++)
		fprintf(out, "  %-15s %s\n", s->options[i].name,
			s->options[i].help);
	fputs("Exit code 1 when a point could not be run or was wrong; a claim "
	      "that does not\nhold is no failure.\n",
	      out);
}

/* The name is one of the words of the figure's. */
static bool is_named(const struct figure *f, const char *name)
{
	size_t n = strlen(name);

	for (const char *at = f->name; n && (at = strstr(at, name)); at++)
		if ((at == f->name || at[-1] == ' ') &&
		    (!at[n] || at[n] == ' '))
			return true;
	return false;
}

const struct figure *figure_by_name(const struct figure_system *system,
				    const char *name)
{
	for (const struct figure *f = system->figures; f->name; f++)
		if (is_named(f, name))
			return f;
	return NULL;
}

static bool number(const char *text, uint64_t most, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && !errno && *out <= most;
}

static bool take_own(struct arguments *a, unsigned i, const char *value)
{
	const struct figure_option *o = &a->system->options[i];

	for (unsigned k = 0; k < o->name_count; k++)
		if (!strcmp(o->names[k], value)) {
			a->o.value[i] = k;
			return true;
		}
	return !o->names && number(value, o->most, &a->o.value[i]);
}

/* What the option's value is good for. */
static bool take(struct arguments *a, const char *name, const char *value)
{
	uint64_t n;

	if (!strcmp(name, "--figure")) {
		a->figure = value;
		return !strcmp(value, "all") ||
		       figure_by_name(a->system, value);
	}
	if (!strcmp(name, "--out")) {
		a->o.out = value;
		return !access(value, W_OK);
	}
	if (!strcmp(name, "--jobs")) {
		bool ok = number(value, JOBS_MAX, &n) && n;

		a->o.jobs = (unsigned)n;
		return ok;
	}
	for (unsigned i = 0; i < a->system->option_count; i++)
		if (!strcmp(name, a->system->options[i].name))
			return take_own(a, i, value);
	return false;
}

static bool take_flag(struct arguments *a, const char *name)
{
	if (!strcmp(name, "--json"))
		return a->o.json = true;
	if (!strcmp(name, "--quick"))
		return a->o.quick = true;
	if (!strcmp(name, "--detail"))
		return a->o.detail = true;
	for (unsigned i = 0; i < a->system->option_count; i++)
		if (!a->system->options[i].names &&
		    !a->system->options[i].most &&
		    !strcmp(name, a->system->options[i].name))
			return (a->o.value[i] = 1);
	return false;
}

static int run_all(const struct arguments *a)
{
	int rc = 0, bad = 0;

	for (const struct figure *f = a->system->figures; f->name && !rc; f++) {
		rc = figure_make(a->system, f, &a->o);
		bad = rc == -EIO ? rc : bad;
		/* It has none of the points that were asked for, or it was
		 * told which were wrong. */
		rc = rc == -ENOENT || rc == -EIO ? 0 : rc;
	}
	return rc ? rc : bad;
}

int figure_cmd(const struct figure_system *system, int argc, char **argv)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	struct arguments a = {.system = system, .figure = "all"};
	int rc;

	a.o.jobs = processors < 1	   ? 1
		   : processors > JOBS_MAX ? JOBS_MAX
					   : (unsigned)processors;
	for (unsigned i = 0; i < system->option_count; i++)
		a.o.value[i] = system->options[i].unset;
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
			usage(system, stdout);
			return FIGURE_RAN;
		}
		if (take_flag(&a, argv[i]))
			continue;
		if (i + 1 == argc || !take(&a, argv[i], argv[i + 1])) {
			fprintf(stderr,
				"aquifer: sim %s: %s %s is no option with a "
				"fitting value\n",
				system->name, argv[i],
				i + 1 < argc ? argv[i + 1] : "");
			usage(system, stderr);
			return FIGURE_USAGE;
		}
		i++;
	}
	rc = strcmp(a.figure, "all")
		     ? figure_make(system, figure_by_name(system, a.figure),
				   &a.o)
		     : run_all(&a);
	if (rc)
		fprintf(stderr, "aquifer: sim %s: %s\n", system->name,
			*error_last() ? error_last() : strerror(-rc));
	return rc ? FIGURE_BROKEN : FIGURE_RAN;
}
