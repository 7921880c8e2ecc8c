/* SPDX-License-Identifier: Apache-2.0 */
/* Object files: finds the functions that are walks, what their relocations
 * name, and the windows that they state. What the code does is left to others.
 */
#include <errno.h>
#include <libelf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "walkc_priv.h"

#define PREFIX	      "walk/"
#define WINDOW_PREFIX "walk.window/"
#define TYPES_PREFIX  "walk.types/"
#define TYPES_NAME    "aq_walk_types_"

struct walkc_object {
	char *file;
	char *bytes;
	Elf *elf;
	size_t section_count, names_section;
	Elf_Data *symbols;
	size_t symbol_names; /* the section that has their names */
	struct walkc_btf btf;
	struct walkc_function walks[WALKC_WALKS_MAX];
	unsigned walk_count;
};

static bool begins(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

static int no_object(const struct walkc_object *o, const char *why)
{
	return error_set(-EBADMSG,
			 "%s is no object file of a walk: %s; 'aquifer walk "
			 "build' compiles C",
			 o->file, why);
}

/* The section's header and name; NULL at a damaged one. */
static const Elf64_Shdr *section(const struct walkc_object *o, size_t i,
				 const char **name)
{
	Elf_Scn *scn = elf_getscn(o->elf, i);
	const Elf64_Shdr *h = scn ? elf64_getshdr(scn) : NULL;

	*name = h ? elf_strptr(o->elf, o->names_section, h->sh_name) : NULL;
	return *name ? h : NULL;
}

static Elf_Data *data_of(const struct walkc_object *o, size_t i)
{
	Elf_Scn *scn = elf_getscn(o->elf, i);
	Elf_Data *d = scn ? elf_getdata(scn, NULL) : NULL;

	return d && d->d_buf ? d : NULL;
}

static struct walkc_bytes bytes_of(const struct walkc_object *o,
				   const char *wanted)
{
	for (size_t i = 1; i < o->section_count; i++) {
		const char *name;
		Elf_Data *d;

		if (!section(o, i, &name) || strcmp(name, wanted) != 0)
			continue;
		d = data_of(o, i);
		if (d)
			return (struct walkc_bytes){d->d_buf, d->d_size};
	}
	return (struct walkc_bytes){NULL, 0};
}

/* ---- symbols and relocations -------------------------------------------- */

static bool symbol_of(const struct walkc_object *o, uint64_t i, Elf64_Sym *out)
{
	if (!o->symbols || i >= o->symbols->d_size / sizeof(*out))
		return false;
	memcpy(out, (const uint8_t *)o->symbols->d_buf + i * sizeof(*out),
	       sizeof(*out));
	return true;
}

static const char *symbol_name(const struct walkc_object *o, const Elf64_Sym *s)
{
	const char *name = elf_strptr(o->elf, o->symbol_names, s->st_name);

	return name ? name : "";
}

/* The function that begins there, for messages. */
static const char *function_at(const struct walkc_object *o, size_t in,
			       uint64_t offset)
{
	Elf64_Sym s;

	for (uint64_t i = 0; symbol_of(o, i, &s); i++)
		if (ELF64_ST_TYPE(s.st_info) == STT_FUNC && s.st_shndx == in &&
		    s.st_value == offset)
			return symbol_name(o, &s);
	return "";
}

static void name_symbol(const struct walkc_object *o, const Elf64_Sym *s,
			const struct bpf_insn *insn, struct walkc_name *n)
{
	const char *where;

	n->symbol = symbol_name(o, s);
	n->section = "";
	if (s->st_shndx == SHN_UNDEF || s->st_shndx >= o->section_count ||
	    !section(o, s->st_shndx, &where))
		return;
	n->section = where;
	/* A static function is named by its section and where it begins. */
	if (ELF64_ST_TYPE(s->st_info) == STT_SECTION)
		n->symbol =
			function_at(o, s->st_shndx,
				    ((uint64_t)insn->imm + 1) * sizeof(*insn));
}

static int by_insn(const void *a, const void *b)
{
	const struct walkc_name *x = a, *y = b;

	return x->insn < y->insn ? -1 : x->insn > y->insn;
}

static int read_names(const struct walkc_object *o, struct walkc_function *f,
		      const Elf_Data *d)
{
	size_t count = d->d_size / sizeof(Elf64_Rel);
	struct walkc_name *names;

	if (count > f->count)
		return no_object(o, "it has more relocations than "
				    "instructions");
	names = reallocarray(f->names, f->name_count + count + 1,
			     sizeof(*names));
	if (!names)
		return error_set(-ENOMEM, "no memory for %s", o->file);
	f->names = names;
	for (size_t i = 0; i < count; i++) {
		struct walkc_name *n = &names[f->name_count];
		Elf64_Rel r;
		Elf64_Sym s;

		memcpy(&r, (const uint8_t *)d->d_buf + i * sizeof(r),
		       sizeof(r));
		if (r.r_offset % sizeof(*f->insns) ||
		    r.r_offset / sizeof(*f->insns) >= f->count ||
		    !symbol_of(o, ELF64_R_SYM(r.r_info), &s))
			return no_object(o, "a relocation is damaged");
		n->insn = (uint32_t)(r.r_offset / sizeof(*f->insns));
		name_symbol(o, &s, &f->insns[n->insn], n);
		f->name_count++;
	}
	qsort(names, f->name_count, sizeof(*names), by_insn);
	return 0;
}

const struct walkc_name *walkc_name_of(const struct walkc_function *f,
				       uint32_t insn)
{
	const struct walkc_name key = {.insn = insn};

	return f->name_count ? bsearch(&key, f->names, f->name_count,
				       sizeof(key), by_insn)
			     : NULL;
}

/* ---- walks -------------------------------------------------------------- */

static int read_walk(struct walkc_object *o, size_t at, const char *name)
{
	struct walkc_function *f = &o->walks[o->walk_count];
	const char *own = name + strlen(PREFIX);
	Elf_Data *d = data_of(o, at);
	struct bpf_insn *insns;
	int n;

	if (o->walk_count == WALKC_WALKS_MAX)
		return error_set(-EINVAL, "%s has more than %d walks", o->file,
				 WALKC_WALKS_MAX);
	n = snprintf(f->name, sizeof(f->name), "%s", own);
	if (n <= 0 || (size_t)n >= sizeof(f->name))
		return error_set(-EINVAL,
				 "the name of a walk has 1 to %zu characters, "
				 "not as '%.60s'",
				 sizeof(f->name) - 1, own);
	if (!d || !d->d_size || d->d_size % sizeof(*f->insns))
		return no_object(o, "a function has no whole instructions");
	if (d->d_size / sizeof(*f->insns) > WALKC_INSNS_MAX)
		return error_set(-EINVAL,
				 "%s: %zu instructions, and a walk has at most "
				 "%d before it is translated",
				 f->name, d->d_size / sizeof(*f->insns),
				 WALKC_INSNS_MAX);
	/* In a file that is damaged they may lie at any address. */
	insns = malloc(d->d_size);
	if (!insns)
		return error_set(-ENOMEM, "no memory for %s", o->file);
	memcpy(insns, d->d_buf, d->d_size);
	f->section = name;
	f->insns = insns;
	f->count = (uint32_t)(d->d_size / sizeof(*f->insns));
	f->object = o;
	o->walk_count++;
	for (size_t i = 1; i < o->section_count; i++) {
		const char *ignored;
		const Elf64_Shdr *h = section(o, i, &ignored);
		int err = 0;

		if (h && h->sh_type == SHT_REL && h->sh_info == at &&
		    (d = data_of(o, i)))
			err = read_names(o, f, d);
		if (err)
			return err;
	}
	return 0;
}

/* AQ_WALK_WINDOW, and the sizes of the two structs. */
static int read_sizes(struct walkc_object *o, struct walkc_function *f)
{
	char window[sizeof(WINDOW_PREFIX) + WALKC_NAME_MAX];
	char types[sizeof(TYPES_NAME) + WALKC_NAME_MAX];
	uint64_t bytes[2];
	struct walkc_bytes w;

	walkc_btf_parameters(&o->btf, f->name, bytes);
	if (!bytes[0] && !bytes[1]) {
		(void)snprintf(types, sizeof(types), TYPES_NAME "%s", f->name);
		walkc_btf_parameters(&o->btf, types, bytes);
	}
	f->node = (struct walkc_span){0, bytes[0]};
	f->pad = (struct walkc_span){0, bytes[1]};
	(void)snprintf(window, sizeof(window), WINDOW_PREFIX "%s", f->name);
	w = bytes_of(o, window);
	if (!w.at)
		return 0;
	if (w.len != 2 * sizeof(le32))
		return error_set(-EINVAL,
				 "%s: state the window once, with "
				 "AQ_WALK_WINDOW(%s, lo, bytes)",
				 f->name, f->name);
	f->is_window_stated = true;
	f->node.lo = (int32_t)le32_get(*(const le32 *)w.at);
	f->node.bytes = le32_get(*(const le32 *)(w.at + sizeof(le32)));
	return 0;
}

/* ---- the file ----------------------------------------------------------- */

/* Sections that a compiler makes and that hold no code of a walk. */
static bool is_harmless(const char *name, const Elf64_Shdr *h)
{
	static const char *const known[] = {".text",   ".data",	    ".bss",
					    ".rodata", ".eh_frame", ".llvm"};

	if (!(h->sh_flags & SHF_ALLOC))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (begins(name, known[i]))
			return true;
	return begins(name, WINDOW_PREFIX) || begins(name, TYPES_PREFIX);
}

static int read_sections(struct walkc_object *o)
{
	int err;

	for (size_t i = 1; i < o->section_count; i++) {
		const char *name;
		const Elf64_Shdr *h = section(o, i, &name);

		if (!h)
			return no_object(o, "a section is damaged");
		if (h->sh_type != SHT_SYMTAB)
			continue;
		o->symbols = data_of(o, i);
		o->symbol_names = h->sh_link;
	}
	err = walkc_btf_open(&o->btf, bytes_of(o, ".BTF"),
			     bytes_of(o, ".BTF.ext"));
	for (size_t i = 1; i < o->section_count && !err; i++) {
		const char *name;
		const Elf64_Shdr *h = section(o, i, &name);

		if (h->sh_type == SHT_PROGBITS && begins(name, PREFIX))
			err = read_walk(o, i, name);
		else if (!is_harmless(name, h))
			err = error_set(-EINVAL,
					"%s: section '%.60s' is none of a "
					"walk; AQ_WALK makes those",
					o->file, name);
	}
	for (unsigned i = 0; i < o->walk_count && !err; i++)
		err = read_sizes(o, &o->walks[i]);
	if (!err && !o->walk_count)
		err = error_set(-EINVAL,
				"%s has no walk in it; AQ_WALK of "
				"<aquifer/walk_prog.h> begins one",
				o->file);
	return err;
}

static int read_file(struct walkc_object *o, size_t len)
{
	const Elf64_Ehdr *h;

	if (elf_version(EV_CURRENT) == EV_NONE)
		return error_set(-EOPNOTSUPP, "this libelf is too old");
	o->elf = elf_memory(o->bytes, len);
	if (!o->elf || elf_kind(o->elf) != ELF_K_ELF)
		return no_object(o, "it is no ELF file");
	h = elf64_getehdr(o->elf);
	if (!h || h->e_ident[EI_DATA] != ELFDATA2LSB)
		return no_object(o, "it is not of 64 bits, little-endian");
	if (h->e_machine != EM_BPF || h->e_type != ET_REL)
		return no_object(o, "it is not for the machine bpf (clang "
				    "-target bpf -c)");
	/* libelf hands out headers where they are in the file. */
	if (h->e_shoff % _Alignof(Elf64_Shdr) ||
	    elf_getshdrnum(o->elf, &o->section_count) ||
	    elf_getshdrstrndx(o->elf, &o->names_section))
		return no_object(o, "its sections are damaged");
	return read_sections(o);
}

int walkc_object_open(const void *bytes, size_t len, const char *file,
		      struct walkc_object **out)
{
	struct walkc_object *o = calloc(1, sizeof(*o));
	int err;

	if (!o)
		return error_set(-ENOMEM, "no memory for %s", file);
	o->file = strdup(file);
	o->bytes = malloc(len + 1);
	if (!o->file || !o->bytes) {
		err = error_set(-ENOMEM, "no memory for %s", file);
	} else if (len > WALKC_BYTES_MAX) {
		err = error_set(-EINVAL, "%s has more than %d MiB", file,
				WALKC_BYTES_MAX >> 20);
	} else {
		memcpy(o->bytes, bytes, len);
		err = read_file(o, len);
	}
	if (err) {
		walkc_object_close(o);
		return err;
	}
	*out = o;
	return 0;
}

void walkc_object_close(struct walkc_object *o)
{
	if (!o)
		return;
	for (unsigned i = 0; i < o->walk_count; i++) {
		free(o->walks[i].names);
		free(o->walks[i].insns);
	}
	walkc_btf_close(&o->btf);
	elf_end(o->elf);
	free(o->bytes);
	free(o->file);
	free(o);
}

unsigned walkc_object_count(const struct walkc_object *o)
{
	return o->walk_count;
}

const char *walkc_object_name(const struct walkc_object *o, unsigned i)
{
	return o->walks[i].name;
}

const struct walkc_function *walkc_object_function(const struct walkc_object *o,
						   unsigned i)
{
	return &o->walks[i];
}

int walkc_refuse(const struct walkc_function *f, uint32_t insn, const char *fmt,
		 ...)
{
	const struct walkc_object *o = f->object;
	const char *file = o->file;
	char words[ERROR_TEXT_MAX];
	uint32_t line;
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(words, sizeof(words), fmt, args);
	va_end(args);
	if (walkc_btf_line(&o->btf, f->section, insn, &file, &line))
		return error_set(-EINVAL, "%s:%u: %s: %s", file, line, f->name,
				 words);
	return error_set(-EINVAL,
			 "%s: %s: instruction %u (compile with -g to see the "
			 "line): %s",
			 file, f->name, insn, words);
}
