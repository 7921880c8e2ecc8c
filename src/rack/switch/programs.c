/* SPDX-License-Identifier: Apache-2.0 */
/* The programs there are, those that a switch runs, and what they report. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json_out.h"
#include "coh.h"
#include "cow.h"
#include "cross.h"
#include "fault.h"
#include "steer.h"
#include "sword.h"
#include "tor_priv.h"

const struct tor_program *const tor_programs[] = {
	&tor_fault,    &tor_steer,     &tor_walk, &tor_cowbird,
	&tor_swordbox, &tor_coherence, NULL,
};

const struct tor_program *tor_program_find(const char *name)
{
	for (unsigned i = 0; tor_programs[i]; i++)
		if (strcmp(tor_programs[i]->name, name) == 0)
			return tor_programs[i];
	return NULL;
}

struct tor *tor_instance_tor(struct tor_instance *self)
{
	return self->tor;
}

uint64_t *tor_instance_counters(struct tor_instance *self)
{
	return self->counters;
}

static int unknown(const char *name)
{
	char list[256] = "";
	size_t n = 0;

	for (unsigned i = 0; tor_programs[i] && n < sizeof(list); i++)
		n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s",
				      i ? ", " : "", tor_programs[i]->name);
	return error_set(-EINVAL, "there is no program '%.32s'; there are: %s",
			 name, list);
}

void tor_instance_release(struct tor_instance *self)
{
	if (self->state && self->counters)
		self->program->release(self->state);
	free(self->state);
	free(self->counters);
}

int tor_program_add(struct tor *tor, const char *name, const char *options)
{
	const struct tor_program *program = tor_program_find(name);
	struct tor_instance *self;
	int err;

	if (!program)
		return unknown(name);
	if (tor->program_count == TOR_PROGRAM_MAX)
		return error_set(-ENOSPC, "a switch runs up to %d programs",
				 TOR_PROGRAM_MAX);
	self = &tor->programs[tor->program_count];
	*self = (struct tor_instance){
		.tor = tor,
		.program = program,
		.index = (uint8_t)tor->program_count,
	};
	self->counters = calloc(program->counter_count + 1, sizeof(uint64_t));
	self->state = calloc(1, program->state_bytes);
	err = self->counters && self->state
		      ? program->init(self->state, self, options)
		      : -ENOMEM;
	if (err) {
		tor_instance_release(self);
	} else {
		tor->program_count++;
		tor->is_watched |= program->packet != NULL;
		tor->sees_ends |= program->sees_ends;
	}
	tor->wants_epoch++;
	return err;
}

int tor_program_add_text(struct tor *tor, const char *text)
{
	size_t n = strcspn(text, ":");
	char name[32];

	if (n >= sizeof(name))
		return unknown(text);
	memcpy(name, text, n);
	name[n] = '\0';
	return tor_program_add(tor, name, text[n] ? text + n + 1 : "");
}

/* ---- control ------------------------------------------------------------ */

/* The next word of a line; returns what follows it. */
static const char *take_word(const char *text, char *word, size_t size_bytes)
{
	size_t n;

	text += strspn(text, " \t\n");
	n = strcspn(text, " \t\n");
	snprintf(word, size_bytes, "%.*s", (int)u64_min(n, size_bytes - 1),
		 text);
	text += n;
	return text + strspn(text, " \t\n");
}

static int control(struct tor_instance *p, const char *line, const char *verb,
		   const char *rest, struct json_out *out)
{
	if (strcmp(verb, "reload") == 0 && p->program->reload)
		return p->program->reload(p->state, rest);
	if (p->program->control)
		return p->program->control(p->state, line, out);
	return error_set(-EINVAL, "program %s does not understand '%.32s'",
			 p->program->name, verb);
}

int tor_control(struct tor *tor, const char *text, struct json_out *out)
{
	char name[32], verb[32];
	const char *line = take_word(text, name, sizeof(name));
	const char *rest = take_word(line, verb, sizeof(verb));
	int err;

	for (unsigned i = 0; i < tor->program_count; i++) {
		if (strcmp(tor->programs[i].program->name, name) != 0)
			continue;
		tor_begin(tor);
		err = control(&tor->programs[i], line, verb, rest, out);
		tor->wants_epoch++;
		tor_end(tor);
		return err;
	}
	return error_set(-ENOENT, "this switch does not run '%.32s'", name);
}

/* ---- reports ------------------------------------------------------------ */

static void report_port(const struct tor_port *p, struct json_out *out)
{
	json_out_object(out, NULL);
	json_out_u64(out, "id", p->id);
	json_out_string(out, "name", p->name);
	json_out_bool(out, "up", p->up);
	for (unsigned i = 0; i < TOR_PORT_COUNTER_COUNT; i++)
		json_out_u64(out, tor_port_counter_names[i], p->counters[i]);
	json_out_close(out);
}

void tor_report_programs(const struct tor *tor, struct json_out *out)
{
	json_out_array(out, "programs");
	for (unsigned i = 0; i < tor->program_count; i++) {
		const struct tor_instance *p = &tor->programs[i];

		json_out_object(out, NULL);
		json_out_string(out, "name", p->program->name);
		for (unsigned k = 0; k < p->program->counter_count; k++)
			json_out_u64(out, p->program->counter_names[k],
				     p->counters[k]);
		json_out_close(out);
	}
	json_out_close(out);
}

void tor_report(const struct tor *tor, struct json_out *out)
{
	json_out_object(out, "counters");
	for (unsigned i = 0; i < TOR_COUNTER_COUNT; i++)
		json_out_u64(out, tor_counter_names[i], tor->counters[i]);
	json_out_close(out);
	json_out_array(out, "ports");
	for (unsigned i = 0; i < tor->port_count; i++)
		if (tor->ports[i])
			report_port(tor->ports[i], out);
	json_out_close(out);
	tor_report_programs(tor, out);
}

unsigned tor_program_tables(const struct tor *tor, const char *name,
			    struct tor_table table[TOR_TABLE_MAX])
{
	if (strcmp(name, "forward") == 0) {
		table[0] = (struct tor_table){
			"addresses", (uint64_t)tor->fdb.buckets * TOR_FDB_WAYS,
			160, 64, 2};
		return 1;
	}
	for (unsigned i = 0; i < tor->program_count; i++) {
		const struct tor_instance *p = &tor->programs[i];
		unsigned n = 0;

		if (strcmp(p->program->name, name) != 0)
			continue;
		if (p->program->tables)
			n = p->program->tables(p->state, table);
		ASSERT(n <= TOR_TABLE_MAX);
		return n;
	}
	return 0;
}

static void report_tables(const struct tor *tor, const char *name,
			  struct json_out *out)
{
	struct tor_table table[TOR_TABLE_MAX];
	unsigned n = tor_program_tables(tor, name, table);
	uint64_t bits = 0;
	uint32_t stages = 0;

	json_out_object(out, NULL);
	json_out_string(out, "program", name);
	json_out_array(out, "tables");
	for (unsigned i = 0; i < n; i++) {
		uint64_t b = tor_table_bits(&table[i]);

		json_out_object(out, NULL);
		json_out_string(out, "table", table[i].name);
		json_out_string(out, "kind", tor_table_kind(&table[i]));
		json_out_u64(out, "entries", table[i].entries);
		json_out_u64(out, "key_bits", table[i].key_bits);
		json_out_u64(out, "value_bits", table[i].value_bits);
		json_out_u64(out, "bits", b);
		json_out_u64(out, "stages", table[i].stages);
		json_out_close(out);
		bits += b;
		stages += table[i].stages;
	}
	json_out_close(out);
	json_out_u64(out, "bits", bits);
	json_out_u64(out, "stages", stages);
	json_out_close(out);
}

void tor_report_resources(const struct tor *tor, struct json_out *out)
{
	json_out_array(out, "resources");
	report_tables(tor, "forward", out);
	for (unsigned i = 0; i < tor->program_count; i++)
		report_tables(tor, tor->programs[i].program->name, out);
	json_out_close(out);
}
