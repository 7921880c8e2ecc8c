/* SPDX-License-Identifier: Apache-2.0 */
/* Which files the preload library gets into. */
#include <elf.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "run/exe.h"

static char path[] = "/tmp/aquifer-exe.XXXXXX";

static void write_file(const void *bytes, size_t n)
{
	int fd = open(path, O_WRONLY | O_TRUNC);

	assert_int_equal(write(fd, bytes, n), n);
	(void)close(fd);
}

struct image {
	Elf64_Ehdr head;
	Elf64_Phdr part[2];
};

static struct image image_of(uint32_t type)
{
	struct image i = {
		.head = {.e_machine = EM_X86_64,
			 .e_phoff = sizeof(Elf64_Ehdr),
			 .e_phentsize = sizeof(Elf64_Phdr),
			 .e_phnum = 2},
		.part = {{.p_type = PT_LOAD}, {.p_type = type}},
	};

	memcpy(i.head.e_ident, ELFMAG, SELFMAG);
	i.head.e_ident[EI_CLASS] = ELFCLASS64;
	return i;
}

static enum exe_kind look(void)
{
	return exe_look(path, getuid(), getgid());
}

static void a_loader_makes_the_difference(void **state)
{
	struct image i = image_of(PT_INTERP);

	(void)state;
	write_file(&i, sizeof(i));
	assert_int_equal(look(), EXE_DYNAMIC);
	assert_null(exe_why(EXE_DYNAMIC));
	i = image_of(PT_NOTE);
	write_file(&i, sizeof(i));
	assert_int_equal(look(), EXE_STATIC);
	assert_non_null(exe_why(EXE_STATIC));
	i.head.e_ident[EI_CLASS] = ELFCLASS32;
	write_file(&i, sizeof(i));
	assert_int_equal(look(), EXE_FOREIGN);
	/* Cut off in the middle. */
	i = image_of(PT_INTERP);
	write_file(&i, sizeof(i) - 8);
	assert_int_equal(look(), EXE_UNKNOWN);
}

static void rights_of_the_file_keep_the_library_out(void **state)
{
	struct image i = image_of(PT_INTERP);

	(void)state;
	write_file(&i, sizeof(i));
	assert_int_equal(chmod(path, 04755), 0);
	assert_int_equal(look(), EXE_DYNAMIC); /* they are ours already */
	assert_int_equal(exe_look(path, getuid() + 1, getgid()), EXE_SECURE);
	assert_int_equal(chmod(path, 0755), 0);
	assert_int_equal(exe_look(path, getuid() + 1, getgid()), EXE_DYNAMIC);
}

static void a_script_is_what_its_interpreter_is(void **state)
{
	static const char sh[] = "#! /bin/sh -e\necho this is a script that is "
				 "longer than the head of an ELF file\n";
	static const char self[] = "#!/nowhere/at/all\n";
	static const char text[] = "no program";

	(void)state;
	write_file(sh, sizeof(sh));
	assert_int_equal(look(), EXE_DYNAMIC);
	write_file(self, sizeof(self));
	assert_int_equal(look(), EXE_UNKNOWN);
	write_file(text, sizeof(text));
	assert_int_equal(look(), EXE_UNKNOWN);
	write_file("", 0);
	assert_int_equal(look(), EXE_UNKNOWN);
}

static void programs_are_found_as_execvp_does(void **state)
{
	char found[256];

	(void)state;
	assert_true(exe_find("sh", found, sizeof(found)));
	assert_int_equal(exe_look(found, 0, 0), EXE_DYNAMIC);
	assert_true(exe_find("/bin/sh", found, sizeof(found)));
	assert_false(exe_find("no-such-program", found, sizeof(found)));
	assert_false(exe_find("/no/such/program", found, sizeof(found)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_loader_makes_the_difference),
		cmocka_unit_test(rights_of_the_file_keep_the_library_out),
		cmocka_unit_test(a_script_is_what_its_interpreter_is),
		cmocka_unit_test(programs_are_found_as_execvp_does),
	};
	int fd = mkstemp(path), failed;

	if (fd < 0)
		return 1;
	(void)close(fd);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	(void)unlink(path);
	return failed;
}
