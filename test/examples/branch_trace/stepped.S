// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// Programs whose branches are known, without a library: each begins at a label of its own, to be
// linked with -e. For 64 and for 32 bits. What each does is said beside it; single_step_test.cpp
// counts on it.

#if defined(__x86_64__)
#define A rax
#define B rdi  /* arguments of a system call, in order */
#define C rsi
#define D rdx
#define E r10
#define F r8
#define N rcx
#define SP rsp
#define WORD 8
#define ENTER syscall
#define NR(wide, narrow) wide
#else
#define A eax
#define B ebx
#define C ecx
#define D edx
#define E esi
#define F edi
#define N ecx
#define SP esp
#define WORD 4
#define ENTER int $0x80
#define NR(wide, narrow) narrow
#endif
#define CALL(wide, narrow) mov $NR(wide, narrow), %eax; ENTER
#define EXIT(code) mov $code, %B; CALL(231, 252)
#define BEGIN(name) .globl name; name:

    .text
// 1,005 taken branches: 999 conditional, a jump, a call, two returns, an indirect jump and call.
BEGIN(known)
    mov $1000, %ecx
1:  dec %ecx
    jnz 1b
    jmp 2f
    nop
2:  call leaf
    lea leaf, %A
    call *%A
    lea 3f, %A
    jmp *%A
    nop
3:  cmp $1, %ecx
    je 1b
    EXIT(0)
leaf:
    ret

// Branches to the next instruction, and repeated instructions: 6 conditional, a call, a jump.
BEGIN(edges)
    xor %eax, %eax
    .byte 0x74, 0                    // jz, taken
    .byte 0x75, 0                    // jnz, not taken
    call 1f
1:  pop %A
    .byte 0xEB, 0                    // jmp
    mov $3, %ecx
2:  loop 2b                          // twice
    mov $2, %ecx
    .byte 0xE2, 0                    // loop, taken
    .byte 0xE2, 0                    // loop, not taken
    .byte 0xE3, 0                    // jecxz or jrcxz, taken
    mov $5, %ecx
    lea from, %esi
    lea to, %edi
    rep movsb
    .byte 0xE3, 0                    // taken
    mov $1, %ecx
    .byte 0xE3, 0                    // not taken
    EXIT(7)

// Two threads, 500 conditional branches each; the first waits for both.
BEGIN(threads)
    mov $stack_a, %C
    call start
    mov $stack_b, %C
    call start
1:  mov left, %eax
    test %eax, %eax
    jz 2f
    mov $left, %B                    // futex(&left, FUTEX_WAIT, %eax, 0)
    mov %eax, %edx
    mov $0, %ecx
    mov $0, %C
    mov $0, %E
    CALL(202, 240)
    jmp 1b
2:  EXIT(0)
start:
    mov $0x50F00, %B                 // VM, FS, FILES, SIGHAND, THREAD, SYSVSEM
    CALL(56, 120)
    test %eax, %eax
    jz 3f
    ret
3:  mov $500, %ecx
4:  dec %ecx
    jnz 4b
    lock decl left
    mov $left, %B                    // futex(&left, FUTEX_WAKE, 1)
    mov $1, %C
    mov $1, %D
    CALL(202, 240)
    mov $0, %B
    CALL(60, 1)

// A child with 100 conditional branches and the code 3; the parent waits for it and has one.
BEGIN(forks)
    CALL(57, 2)
    test %eax, %eax
    jz child
    mov %eax, %edi
    mov %eax, %ebx
    mov $0, %C
    mov $0, %D
    mov $0, %E
    CALL(61, 114)                    // wait4
    xor %eax, %eax
    jz 3f
3:  EXIT(0)
child:
    mov $100, %ecx
2:  dec %ecx
    jnz 2b
    EXIT(3)

// The same by clone, without a signal for the parent.
BEGIN(clones)
    mov $0, %B
    mov $0, %C
    mov $0, %D
    mov $0, %E
    mov $0, %F
    CALL(56, 120)
    test %eax, %eax
    jz child
    mov %eax, %edi
    mov %eax, %ebx
    mov $0, %C
    mov $0x40000000, %D              // __WALL
    mov $0, %E
    CALL(61, 114)                    // wait4
    xor %eax, %eax
    jz 3f
3:  EXIT(0)

// A thread executes the first argument, while the first thread waits for ever.
BEGIN(thread_execs)
    mov %SP, kept
    mov $stack_a, %C
    mov $0x50F00, %B
    CALL(56, 120)
    test %eax, %eax
    jz 1f
2:  CALL(34, 29)                     // pause
    jmp 2b
1:  mov kept, %C
    lea 2*WORD(%C), %C
    mov (%C), %B
    mov $0, %D
    CALL(59, 11)
    EXIT(1)

// Code in memory that is mapped, called, written anew while it cannot be executed, and called again:
// two indirect calls and returns, one jump; and four calls and returns of `protect`.
BEGIN(maps)
    mov $3, %D                       // mprotect(page, 4096, read and write)
    call protect
    movl $0x000000C3, page           // ret
    mov $5, %D
    call protect
    mov $page, %A
    call *%A
    mov $3, %D
    call protect
    movl $0x00C300EB, page           // jmp to the next, ret
    mov $5, %D
    call protect
    mov $page, %A
    call *%A
    EXIT(0)
protect:
    mov $page, %B
    mov $4096, %C
    CALL(10, 125)
    ret

// Executes its first argument, after one jump.
BEGIN(execs)
    jmp 1f
    nop
1:  lea 2*WORD(%SP), %C
    mov (%C), %B
    mov $0, %D
    CALL(59, 11)
    EXIT(1)

// A handler (9 conditional branches and a return) is called by kill and by int3; the code is how often.
BEGIN(handles)
    mov $10, %B
    call install
    mov $5, %B
    call install
    CALL(39, 20)                     // getpid
    mov %A, %B
    mov $10, %C
    CALL(62, 37)                     // kill
    int3
    mov called, %B
    CALL(231, 252)
install:
    mov $action, %C
    mov $0, %D
    mov $8, %E
    CALL(13, 174)
    ret
handler:
    mov $10, %ecx
1:  dec %ecx
    jnz 1b
    incl called
    ret
restorer:
    CALL(15, 173)

// Looks for a trap flag that it has not set: in what pushf pushes, behind a system call and in its
// child, and in the frames of signals, one of which comes instead of a popf. Then it sets the flag
// itself, by popf and in a frame. The code is how many SIGTRAPs came, and 32 for each flag seen; and
// 16 if its own was not.
BEGIN(sees_flags)
    pushf
    pop %A
    call look
    pushfw
    popw %ax
    call look
    mov %ss, %ecx
    mov %ecx, %ss                    // no step ends here
    pushf
    pop %A
    call look
    mov %ss, %ecx
    mov %ecx, number
    lea number, %A
    mov (%A), %ss                    // nor behind such of memory
    pushf
    pop %A
    call look
    lea number - 8, %A
    mov 8(%A), %ss
    pushf
    pop %A
    call look
#if defined(__x86_64__)
    mov number(%rip), %ss
    pushf
    pop %A
    call look
    mov $39, %eax
    mov number, %ss
    syscall
    call look_behind_call
#else
    push %ss
    pop %ss
    pushf
    pop %A
    call look
#endif
    pushf
    popf
    pushf
    pop %A
    call look
    CALL(39, 20)                     // getpid
    call look_behind_call
    CALL(57, 2)                      // fork
    test %eax, %eax
    jnz 1f
    call look_behind_call
    pushf
    pop %A
    call look
    mov seen, %B
    CALL(231, 252)
1:  mov %eax, %edi
    mov %eax, %ebx
    mov $kept, %C
    mov $0, %D
    mov $0, %E
    CALL(61, 114)                    // wait4
    mov kept, %eax
    shr $8, %eax
    add %eax, seen
    mov $10, %B
    mov $action_looks, %C
    call install_this
    mov $5, %B
    mov $action_counts, %C
    call install_this
    mov $12, %B
    mov $action_traps, %C
    call install_this
    mov $10, %ecx
    call raise
    mov $10, %C
    CALL(39, 20)
    mov %A, %B
    mov $10, %C
    mov $NR(62, 37), %eax
    pushf
    ENTER
    popf                             // the signal is there first
#if !defined(__x86_64__)
    mov $10, %B
    mov $action_looks_short, %C      // a frame of the older kind
    call install_this
    mov $10, %ecx
    call raise
#endif
    pushf
    orl $0x100, (%SP)
    popf
    nop
    pushf
    mov (%SP), %edx
    andl $~0x100, (%SP)
    popf
    test $0x100, %edx
    jnz 2f
    orl $16, called
2:  mov $12, %ecx
    call raise
    nop
    nop
    pushf
    andl $~0x100, (%SP)
    popf
    mov seen, %eax
    shl $5, %eax
    or called, %eax
    mov %A, %B
    CALL(231, 252)
look:
    test $0x100, %eax
    jz 1f
    incl seen
1:  ret
look_behind_call:
#if defined(__x86_64__)
    mov %r11, %A
    call look
#endif
    ret
raise:
    mov %ecx, number
    CALL(39, 20)
    mov %A, %B
    mov number, %C
    CALL(62, 37)
    ret
install_this:
    mov $0, %D
    mov $8, %E
    CALL(13, 174)
    ret
looks:
#if defined(__x86_64__)
    mov 176(%rdx), %eax
#else
    mov 12(%esp), %edx
    mov 84(%edx), %eax
#endif
    call look
    ret
looks_short:
    mov 72(%SP), %eax
    call look
    ret
counts:
    incl called
    ret
traps:
#if defined(__x86_64__)
    orl $0x100, 176(%rdx)
#else
    mov 12(%esp), %edx
    orl $0x100, 84(%edx)
#endif
    ret
restorer_short:
    pop %A
    mov $119, %eax
    ENTER

// Nine conditional branches, then a load from nowhere.
BEGIN(crashes)
    mov $10, %ecx
1:  dec %ecx
    jnz 1b
    xor %eax, %eax
    mov (%A), %ecx
    EXIT(0)

// Executes a jump, two instructions that are none in its place, then the jump again: two jumps and
// four conditional branches. The code is in memory that may be written to by then.
BEGIN(modifies)
    mov $patched, %B                 // mprotect(its page and the next, read, write, execute)
    and $-4096, %B
    mov $8192, %C
    mov $7, %D
    CALL(10, 125)
    mov $3, %edx
1:  cmp $2, %edx
    movw $0x00EB, patched
    jne patched
    movw $0x9090, patched
patched:
    .byte 0xEB, 0
    dec %edx
    jnz 1b
    EXIT(0)

// Stops itself, and goes on: two conditional branches, one before and one behind.
BEGIN(stops)
    xor %eax, %eax
    jz 1f
1:  CALL(39, 20)
    mov %A, %B
    mov $19, %C
    CALL(62, 37)
    xor %eax, %eax
    jz 2f
2:  EXIT(5)

// Waits for a signal, for ever.
BEGIN(waits)
    xor %eax, %eax
    jz 1f
1:  CALL(34, 29)
    jmp 1b

// Runs for ever.
BEGIN(spins)
1:  jmp 1b

// A page of code, at first not to be written to.
    .balign 4096
page:
    .zero 4096

    .data
    .balign 16
action:
#if defined(__x86_64__)
    .quad handler, 0x04000000, restorer, 0
action_looks:
    .quad looks, 0x04000000, restorer, 0
action_counts:
    .quad counts, 0x04000000, restorer, 0
action_traps:
    .quad traps, 0x04000000, restorer, 0
#else
    .long handler, 0x04000004, restorer, 0, 0
action_looks:
    .long looks, 0x04000004, restorer, 0, 0
action_counts:
    .long counts, 0x04000004, restorer, 0, 0
action_traps:
    .long traps, 0x04000004, restorer, 0, 0
action_looks_short:
    .long looks_short, 0x04000000, restorer_short, 0, 0
#endif
seen:   .long 0, 0
number: .long 0, 0
called: .long 0, 0
kept:   .long 0, 0
left:   .long 2
from:   .ascii "abcde"
to:     .ascii "....."
    .balign 16
    .zero 256
stack_a:
    .zero 256
stack_b:
    .zero 256
    .section .note.GNU-stack, "", @progbits
