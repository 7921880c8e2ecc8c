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
	if (s->help)
		s->help(out);
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

static bool take_own(const struct figure_option *o, const char *value,
		     uint64_t *out)
{
	for (*out = 0; *out < o->name_count; ++*out)
		if (!strcmp(o->names[*out], value))
			return true;
	return !o->names && number(value, o->most, out);
}

/* How many words of the command line the option is; 0: it was all that was
 * asked for; -EINVAL: the value does not fit, or there is no such option. */
static int take(const struct figure_system *s, struct figure_options *o,
		const char *name, const char *value)
{
	uint64_t n = 0;
	bool fits = false;

	for (unsigned i = 0; i < s->option_count; i++) {
		const struct figure_option *own = &s->options[i];

		if (strcmp(name, own->name))
			continue;
		if (own->print) {
			own->print();
			return 0;
		}
		if (!own->names && !own->most)
			return (int)(o->value[i] = 1);
		return value && take_own(own, value, &o->value[i]) ? 2
								   : -EINVAL;
	}
	if (!strcmp(name, "--json"))
		return o->json = true;
	if (!strcmp(name, "--quick"))
		return o->quick = true;
	if (!strcmp(name, "--detail"))
		return o->detail = true;
	if (!strcmp(name, "--figure") && value) {
		o->figure = value;
		fits = !strcmp(value, "all") || figure_by_name(s, value);
	} else if (!strcmp(name, "--out") && value) {
		o->out = value;
		fits = !access(value, W_OK);
	} else if (!strcmp(name, "--jobs") && value) {
		fits = number(value, JOBS_MAX, &n) && n;
		o->jobs = (unsigned)n;
	} else if (s->take) {
		return s->take(o, name, value);
	}
	return fits ? 2 : -EINVAL;
}

/* "--name=value" is two words, too. */
static int take_word(const struct figure_system *s, struct figure_options *o,
		     char **argv)
{
	char *equals = strchr(argv[0], '=');
	int words;

	error_clear();
	if (!equals)
		return take(s, o, argv[0], argv[1]);
	*equals = 0;
	words = take(s, o, argv[0], equals + 1);
	*equals = '=';
	return words < 0 ? words : 1;
}

int figure_parse(const struct figure_system *system, struct figure_options *o,
		 int argc, char **argv)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	int words;

	o->jobs = processors < 1	  ? 1
		  : processors > JOBS_MAX ? JOBS_MAX
					  : (unsigned)processors;
	for (unsigned i = 0; i < system->option_count; i++)
		o->value[i] = system->options[i].unset;
	for (int i = 1; i < argc; i += words) {
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
			usage(system, stdout);
			return FIGURE_RAN;
		}
		words = take_word(system, o, argv + i); /* ends with NULL */
		if (!words)
			return FIGURE_RAN;
		if (words > 0)
			continue;
		usage(system, stderr);
		if (*error_last())
			fprintf(stderr, "aquifer: sim %s: %s\n", system->name,
				error_last());
		else
			fprintf(stderr,
				"aquifer: sim %s: '%s%s%s' is no option with a "
				"fitting value\n",
				system->name, argv[i], argv[i + 1] ? " " : "",
				argv[i + 1] ? argv[i + 1] : "");
		return FIGURE_USAGE;
	}
	return -1;
}

int figure_go(const struct figure_system *system,
	      const struct figure_options *o)
{
	bool all = !strcmp(o->figure, "all");
	int bad = 0;

	for (const struct figure *f = system->figures; f->name; f++) {
		int rc = all || is_named(f, o->figure)
				 ? figure_make(system, f, o)
				 : 0;

		/* One of all need not have the points that are asked for. */
		if (!rc || (all && rc == -ENOENT))
			continue;
		fprintf(stderr, "aquifer: sim %s: %s\n", system->name,
			*error_last() ? error_last() : strerror(-rc));
		bad = rc;
	}
	return bad ? FIGURE_BROKEN : FIGURE_RAN;
}

int figure_cmd(const struct figure_system *system, int argc, char **argv)
{
	struct figure_options o = {0};
	int rc = figure_parse(system, &o, argc, argv);

	o.figure = o.figure ? o.figure : "all";
	return rc < 0 ? figure_go(system, &o) : rc;
}
