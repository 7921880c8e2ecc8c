/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as an object file with walks. What begins like an ELF file is taken
 * as it is; other bytes become the window and the instructions of a function in
 * a whole one, so that the translator is reached, too. Whatever is made of them
 * is verified, and runs inside its windows.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "fuzz.h"
#include "walk/program.h"
#include "walkc/walkc.h"

enum {
	SECTIONS = 5, /* none, code, window, names, symbols */
	WINDOW_BYTES = 8,
	CODE_MAX = 4096,
};

static const char names[] = "\0walk/f\0walk.window/f\0.strtab\0.symtab\0memcpy";

static size_t name_at(const char *name)
{
	for (size_t i = 0; i < sizeof(names); i++)
		if (strcmp(names + i, name) == 0)
			return i;
	abort();
}

/* A section, whose bytes are put behind what is there. */
static void add_section(uint8_t *file, size_t *len, unsigned i,
			Elf64_Shdr section, const char *name, const void *bytes)
{
	section.sh_name = (Elf64_Word)name_at(name);
	section.sh_offset = *len;
	memcpy(file + *len, bytes, section.sh_size);
	*len = align_up(*len + section.sh_size, 8);
	memcpy(file + sizeof(Elf64_Ehdr) + i * sizeof(section), &section,
	       sizeof(section));
}

/* Returns the length of the file, which has room for all of it. */
static size_t wrap(const uint8_t *data, size_t len, uint8_t *file)
{
	const Elf64_Sym symbols[2] = {{0}, {.st_name = 0}};
	Elf64_Ehdr head = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64,
				       ELFDATA2LSB, EV_CURRENT},
			   .e_type = ET_REL,
			   .e_machine = EM_BPF,
			   .e_version = EV_CURRENT,
			   .e_shoff = sizeof(head),
			   .e_ehsize = sizeof(head),
			   .e_shentsize = sizeof(Elf64_Shdr),
			   .e_shnum = SECTIONS,
			   .e_shstrndx = 3};
	size_t at = sizeof(head) + SECTIONS * sizeof(Elf64_Shdr);

	memcpy(file, &head, sizeof(head));
	add_section(file, &at, 1,
		    (Elf64_Shdr){.sh_type = SHT_PROGBITS,
				 .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
				 .sh_addralign = 8,
				 .sh_size = (len - WINDOW_BYTES) & ~7ull},
		    "walk/f", data + WINDOW_BYTES);
	add_section(file, &at, 2,
		    (Elf64_Shdr){.sh_type = SHT_PROGBITS,
				 .sh_flags = SHF_ALLOC,
				 .sh_addralign = 4,
				 .sh_size = WINDOW_BYTES},
		    "walk.window/f", data);
	add_section(file, &at, 3,
		    (Elf64_Shdr){.sh_type = SHT_STRTAB,
				 .sh_addralign = 1,
				 .sh_size = sizeof(names)},
		    ".strtab", names);
	add_section(file, &at, 4,
		    (Elf64_Shdr){.sh_type = SHT_SYMTAB,
				 .sh_link = 3,
				 .sh_info = 1,
				 .sh_addralign = 8,
				 .sh_entsize = sizeof(Elf64_Sym),
				 .sh_size = sizeof(symbols)},
		    ".symtab", symbols);
	return at;
}

static void run(const void *bytes, size_t len, const uint8_t *data,
		size_t data_bytes)
{
	const struct walk_options options = {.interpret = true};
	struct walk_program *p = NULL;
	struct walk_image image;
	uint8_t *node, *pad;
	uint64_t next;

	ASSERT(walk_image_parse(bytes, len, &image) == 0);
	ASSERT(walk_verify(&image, 0, NULL) == 0);
	ASSERT(walk_program_open(&image, &options, &p) == 0);
	node = malloc(image.load_bytes);
	pad = calloc(1, image.pad_bytes + !image.pad_bytes);
	ASSERT(node && pad);
	for (size_t i = 0; i < image.load_bytes; i++)
		node[i] = data[i % data_bytes];
	ASSERT(walk_program_step(p, node, pad, &next) <= WALK_STEP_FAULT);
	free(pad);
	free(node);
	walk_program_close(p);
}

static void translate(const uint8_t *file, size_t len)
{
	struct walkc_object *o = NULL;

	if (walkc_object_open(file, len, "fuzz.o", &o))
		return;
	for (unsigned i = 0; i < walkc_object_count(o); i++) {
		void *bytes = NULL;
		size_t image_bytes;

		if (walkc_translate(o, i, 0, &bytes, &image_bytes))
			continue;
		run(bytes, image_bytes, file, len);
		free(bytes);
	}
	walkc_object_close(o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
	static uint8_t file[2 * CODE_MAX];
	uint8_t *exact;
	size_t len;

	if (len_bytes < WINDOW_BYTES + 8)
		return 0;
	if (memcmp(data,
		   "\x7f"
		   "ELF",
		   4) == 0) {
		translate(data, len_bytes);
		return 0;
	}
	memset(file, 0, sizeof(file));
	len = wrap(data, len_bytes < CODE_MAX ? len_bytes : CODE_MAX, file);
	exact = malloc(len);
	ASSERT(exact);
	memcpy(exact, file, len);
	translate(exact, len);
	free(exact);
	return 0;
}
