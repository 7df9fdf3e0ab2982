#pragma once
// `Else` for the language's own `else`, to stand beside `If` and `While`. Other libraries' headers
// use the word (Eigen has a member Else), so a program includes this one last.

#define Else else
