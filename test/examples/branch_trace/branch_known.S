// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
//
// A program without any library, each of whose branches is known, for 64 and 32 bits: for the tests
// of branch-trace and its report. How many arguments it has says what it does:
//   none   exactly 1,005 branches are taken: 999 of a loop, two calls, two returns, two jumps
//   1      two calls, and the second function stores to address 0
//   2      goes round for ever
//   3      `choose` once, with its first part left out

#if defined(__x86_64__)
#define ARGUMENTS (%rsp)
#define EXIT mov $231, %eax; xor %edi, %edi; syscall
#else
#define ARGUMENTS (%esp)
#define EXIT mov $252, %eax; xor %ebx, %ebx; int $0x80
#endif

    .text
    .globl _start, once, outer, fault, endless, choose
    .type _start, @function
_start:
    mov ARGUMENTS, %eax
    cmp $2, %eax
    je .Lfault
    cmp $3, %eax
    je endless
    cmp $4, %eax
    je .Lchoose
    mov $1000, %ecx
.Lagain:
    dec %ecx
    jnz .Lagain
    call once
    call once
    jmp .Lnear
    nop
.Lnear:
    jmp .Lend
    nop
.Lfault:
    call outer
.Lchoose:
    call choose
.Lend:
    EXIT
    hlt
    .size _start, . - _start

    .type once, @function
once:
    ret
    .size once, . - once

    .type outer, @function
outer:
    nop
    call fault
    ret
    .size outer, . - outer

    .type fault, @function
fault:
    movl $1, 0
    ret
    .size fault, . - fault

    .type endless, @function
endless:
    nop
    jmp endless
    .size endless, . - endless

// At 0, 3, 5, 10, 12, 17; 18 bytes.
    .type choose, @function
choose:
    cmp $10, %eax
    jle .Llow
    mov $1, %edx
    jmp .Lboth
.Llow:
    mov $2, %edx
.Lboth:
    ret
    .size choose, . - choose

    .section .note.GNU-stack, "", @progbits
